"""Floor 5: definitions, jobs, schedules, settings and the command. No SQL, no parsing, no policy."""
