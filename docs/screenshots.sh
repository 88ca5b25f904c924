#!/usr/bin/env bash
# Pictures of Dagster's interface over a demo lake, for the documentation: `make screenshots`.
# Needs Chromium (Debian: apt-get install chromium) and a lake that `make demo` filled.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${DATA:-data}
port=${PORT:-3977}
out=docs/images
command -v chromium >/dev/null || { echo "chromium is not installed" >&2; exit 1; }
mkdir -p "$out"

log=$(mktemp)
setsid "${BIN:-.venv/bin}/strandline" ui --port "$port" --data "$data" >"$log" 2>&1 &
ui=$!
trap 'kill -INT -- -$ui 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 180); do
    grep -aq "Serving dagster-webserver" "$log" && break
    kill -0 "$ui" || { cat "$log" >&2; exit 1; }
    sleep 1
done

shoot() {  # name, page, window
    timeout 180 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$3" \
        --virtual-time-budget=90000 --screenshot="$out/$1.png" "http://127.0.0.1:$port$2" >/dev/null 2>&1
    echo "$out/$1.png"
}
shoot asset-graph "/assets/lake/published?view=lineage&lineageScope=upstream&lineageDepth=20" 2200,1500
shoot ledger-lineage "/assets/mart/gpu_ledger_hourly?view=lineage" 1500,900
shoot ledger-checks "/assets/mart/gpu_ledger_hourly?view=checks" 1500,900
shoot ledger-overview "/assets/mart/gpu_ledger_hourly?view=overview" 1500,1500
shoot runs "/runs" 1500,700
