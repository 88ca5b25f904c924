"""The landing spool: nothing half-written is read, nothing is lost, the same thing twice is one file."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from pathlib import Path

from warehouse.landing import Landing, Record

AT = datetime(2026, 3, 2, 10, 30)


def _record(minute: int = 0, body: bytes | None = b"x") -> Record:
    return Record("dcgm", "c", "t", AT + timedelta(minutes=minute), {"node": "n", "seconds": 0.5}, body)


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    records = [_record(), _record(1, None), _record(2, b""), _record(40, b"y" * 100_000)]
    landing.append(records)
    files = landing.files()
    assert [f.hour for f in files] == [datetime(2026, 3, 2, 10), datetime(2026, 3, 2, 11)]
    assert [r for f in files for r in landing.read(f) or ()] == records
    assert len(landing.files(until=datetime(2026, 3, 2, 11))) == 1
    assert sum(f.size for f in files) < 5000


def test_the_same_batch_twice_is_one_file(tmp_path: Path) -> None:
    assert Landing(tmp_path).append(_record()) == Landing(tmp_path).append(_record())
    assert len(Landing(tmp_path).files()) == 1


def test_large_batches_are_cut(tmp_path: Path) -> None:
    Landing(tmp_path).append(_record(0, os.urandom(1) * (20 << 20)) for _ in range(3))
    assert len(Landing(tmp_path).files()) == 2


def test_damaged_files_are_moved_aside(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    landing.append(_record())
    (landed,) = landing.files()
    for content in (b"", landed.path.read_bytes()[:-3], b"SLAND1\n\0" + b"\xff" * 30, landed.path.read_bytes() + b"x"):
        good = landed.path.read_bytes()
        landed.path.write_bytes(content)
        read = landing.read(landed)
        if read is None:
            assert not landed.path.exists()
            assert list((tmp_path / "landing/damaged").iterdir())
        else:  # bytes behind the end of the compressed frame change nothing
            assert read == [_record()]
        landed.path.write_bytes(good)


def test_unfinished_writes_are_not_seen_and_cleared_later(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    landing.append(_record())
    torn = tmp_path / "landing/tmp/torn"
    torn.write_bytes(b"half")
    (landed,) = landing.files()
    landing.delete([landed])
    assert torn.exists()
    os.utime(torn, (0, 0))
    landing.delete([landed])
    assert not torn.exists()
    assert landing.files() == []


def test_writers_and_a_deleter_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    read: list[Record] = []

    def write(part: int) -> None:
        for i in range(40):
            Landing(tmp_path).append(_record(0, f"{part}/{i}".encode()))

    threads = [threading.Thread(target=write, args=(p,)) for p in range(3)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads) or landing.files():
        files = landing.files()
        read += [r for f in files for r in landing.read(f) or ()]
        landing.delete(files)
    assert len({r.body for r in read}) == 120


def test_records_of_a_clock_gone_wrong_are_set_aside_and_hold_nobody_up(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    wrong = [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(2200, 1, 1), datetime(9999, 12, 31, 23, 59)]
    landing.append([Record("dcgm", "c", "t", at, {}, b"x") for at in [*wrong, AT]])
    assert [f.hour for f in landing.files()] == [AT.replace(minute=0)]
    assert len(list((tmp_path / "landing/damaged").iterdir())) == len(wrong)


def test_a_file_of_a_time_out_of_range_that_stands_in_the_spool_is_moved_aside(tmp_path: Path) -> None:
    landing = Landing(tmp_path)
    landing.append(Record("dcgm", "c", "t", datetime(9999, 12, 31, 23), {}, b"x"))
    (aside,) = (tmp_path / "landing/damaged").iterdir()
    hour, name = aside.name.split(".", 1)
    (tmp_path / "landing" / hour).mkdir()
    aside.rename(tmp_path / "landing" / hour / name)
    (landed,) = landing.files(until=datetime(2026, 3, 3))
    assert landing.read(landed) is None
    assert landing.files() == []
    assert [p.name for p in (tmp_path / "landing/damaged").iterdir()] == [aside.name]
