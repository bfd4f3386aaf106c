"""Rows 18 to 23: a bucket that is overloaded, gone, forbidden, forgetful or wrong, and credentials that stay secret."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "s3"))
from s3_servers import fake_s3  # noqa: E402
from survival_world import need, numbers  # noqa: E402

LOCATION = "s3://bucket/run"
MARKER = "MARKERofTheSecret"


def is_write(entry):
    return entry["method"] == "PUT" and entry["status"] == 200


def check_order(history):
    """Of every step the index after its event: how many, and none the other way."""
    written = {}
    for place, entry in enumerate(history):
        if is_write(entry):
            written.setdefault(entry["key"], place)
    steps = 0
    for key, place in written.items():
        found = re.fullmatch(r"bucket/run/index/\d+/(\d+)_(\w+)\.json", key)
        if not found:
            continue
        event = f"bucket/run/events/{found[1]}/{found[1]}_{found[2]}.tfevents"
        need(event in written and written[event] < place, f"{key} was written before its event file")
        steps += 1
    return steps


def inspect(world, server, log, done):
    """What the run left in the bucket, read as files; and the order it came in."""
    history = server.history()
    mirror = world.path(f"mirror{world.count}")
    world.count += 1
    server.control("save", mirror)
    counts = world.check(os.path.join(mirror, "bucket", "run"), log)
    figures = {**numbers(done), "ordered": check_order(history), "requests": len(history)}
    objects = {entry["key"] for entry in history if is_write(entry)}
    figures["objects"] = len(objects)
    figures["missing"] = len(objects - server.keys().keys())
    need(figures["missing"] == 0, f"{figures['missing']} objects that were written are not there")
    need(counts["lost"] == 0 and counts["damaged"] == 0, f"{counts}")
    need(figures["due"] == figures["committed"] + figures["dropped"], f"{figures}")
    return figures


def train(world, server, steps=200, faults="", **options):
    """One run, and what became of it."""
    _, log = world.new_run()
    server.set_faults(faults)
    done = world.train(LOCATION, log, env=server.environment(), steps=steps, **options)
    need(done.returncode == 0, done.stdout + done.stderr)
    server.set_faults("")
    return inspect(world, server, log, done)


def faulty(world, faults, steps, lossless=True, **options):
    with fake_s3("", "--hang-s", "5") as server:
        figures = train(world, server, steps=steps, faults=faults, close_wait=500, **options)
    need(not lossless or figures["committed"] == steps, f"{faults}: {figures}")
    return figures


def row_18(world):
    """S3 answers 503 to 30 % of all requests."""
    figures = faulty(world, "503:0.3", 40)
    # Beside its objects a run asks some things as it begins and ends: in a short one they weigh.
    need(figures["requests"] <= 2 * figures["objects"] + 20, f"{figures}")
    return figures


def row_18_full(world):
    """503, 500, a lost connection, a cut answer at 30 %, time-outs at 2 %, and 503 at 60 %."""
    figures = {}
    for faults, steps in (("503:0.3", 200), ("500:0.3", 200), ("reset:0.3", 200), ("cut:0.3", 200), ("503:0.6", 40)):
        figures[faults] = faulty(world, faults, steps)
        if faults.endswith("0.3"):
            need(figures[faults]["requests"] <= 2 * figures[faults]["objects"], f"{faults}: {figures[faults]}")
    return figures


def row_19(world):
    """an outage of 5 s: what waits in memory arrives afterwards, in order."""
    return outage(world, 5)


def row_19_full(world):
    """an outage of 60 s."""
    return outage(world, 60)


def row_19_spool(world):
    """an outage of 14 s with a spool and memory for 8 s: nothing is dropped, everything arrives, in order."""
    return spooled_outage(world, 14)


def row_19_spool_full(world):
    """an outage of 10 minutes with a spool."""
    # Tens of thousands of files come at once then, and a CRC-32C takes this server milliseconds.
    return spooled_outage(world, 600, "--checked-bytes", "16384")


def spooled_outage(world, seconds, *server_arguments):
    figures = outage(world, seconds, *server_arguments, spool=world.path("spool"), queue_bytes=6_500_000, bytes=12_000)
    need(figures["dropped"] == 0, f"{figures}")
    need(not any(files for _, _, files in os.walk(world.path("spool"))), "something is left in the spool")
    return figures


def row_19_upload(world):
    """a process killed while the store was away: `tornasole upload` brings what it had saved, or the next run does."""
    figures = {}
    for how in ("upload", "resume"):
        spool = world.path(f"spool-{how}")
        with fake_s3() as server:
            _, log = world.new_run()
            line = world.command(LOCATION, log, steps=100_000, think_ms=5, spool=spool, close_wait=1)
            process = world.start(line, env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            last = time.monotonic() + 60
            while not any("/index/" in key for key in server.keys()) and time.monotonic() < last:
                time.sleep(0.02)
            server.set_faults("503:1")
            waiting = lambda: sum(name.endswith(".json") for _, _, files in os.walk(spool) for name in files)  # noqa: E731
            while waiting() < 100 and time.monotonic() < last:
                time.sleep(0.05)
            need(waiting() >= 100, f"only {waiting()} files wait")
            if how == "upload":
                busy = subprocess.run(
                    [os.path.join(world.bin, "tornasole"), "upload", spool],
                    env=server.environment(), capture_output=True, text=True, check=False,
                )  # fmt: skip
                need(busy.returncode == 1 and "is still running" in busy.stderr, f"{busy}")
            process.kill()
            process.wait()
            server.set_faults("")
            if how == "upload":
                done = subprocess.run(
                    [os.path.join(world.bin, "tornasole"), "upload", spool],
                    env=server.environment(), capture_output=True, text=True, check=False,
                )  # fmt: skip
                need(done.returncode == 0 and "sent " in done.stdout, f"{done}")
            else:
                steps = len([key for key in server.keys() if "/index/" in key])
                again = world.command(LOCATION, log, steps=3, resume=True, spool=spool)
                done = subprocess.run(again, env=server.environment(), capture_output=True, text=True, check=False)
                need(done.returncode == 0 and "committed 3 dropped 0" in done.stdout, f"{done}")
                need(len([key for key in server.keys() if "/index/" in key]) > steps + 3, "what waited did not arrive")
            need(not any(files for _, _, files in os.walk(spool)), "something is left in the spool")
            check_order(server.history())
            mirror = world.path(f"mirror-{how}")
            server.control("save", mirror)
            counts = world.check(os.path.join(mirror, "bucket", "run"), log)
            need(counts["damaged"] == 0, f"{counts}")
            figures[how] = counts
    return figures


def outage(world, seconds, *server_arguments, **options):
    with fake_s3("", *server_arguments) as server:
        _, log = world.new_run()
        line = world.command(LOCATION, log, steps=int(seconds * 20), think_ms=60, close_wait=100, **options)
        process = world.start(line, env=server.environment(), stdout=subprocess.PIPE, text=True)
        last = time.monotonic() + 60
        while not any("/index/" in key for key in server.keys()) and time.monotonic() < last:
            time.sleep(0.05)
        server.set_faults("503:1")
        time.sleep(seconds)
        server.set_faults("")
        out, _ = process.communicate(timeout=600)
        need(process.returncode == 0, out)
        return inspect(world, server, log, subprocess.CompletedProcess(line, 0, out, ""))


def row_20(world):
    """403, an expired token and a missing bucket in mid-run: one report, capture off, no bucket made."""
    figures = {}
    for fault in ("403", "expired", "nobucket"):
        with fake_s3() as server:
            _, log = world.new_run()
            line = world.command(LOCATION, log, steps=100, think_ms=20)
            process = world.start(line, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            last = time.monotonic() + 60
            while not any("/index/" in key for key in server.keys()) and time.monotonic() < last:
                time.sleep(0.02)
            server.set_faults(f"{fault}:1")
            out, err = process.communicate(timeout=300)
            need(process.returncode == 0, f"{fault}: {out}{err}")
            need(world.bare_hash(100) in out, f"{fault}: weights changed")
            made = [e for e in server.history() if e["method"] == "PUT" and "/" not in e["key"].strip("/")]
            need(not made, f"{fault}: tried to make a bucket")
            counts = numbers(subprocess.CompletedProcess(line, 0, out, err))
            need(counts["committed"] >= 1 and counts["due"] == counts["committed"] + counts["dropped"], f"{fault}: {counts}")
            figures[fault] = counts
    return figures


def row_21(world):
    """30 % of the answers are lost after the work was done, with and without conditions."""
    figures = {}
    for name, arguments in (("conditional", ()), ("plain", ("--no-conditional",))):
        with fake_s3("", *arguments) as server:
            figures[name] = train(world, server, steps=60, faults="lost_reply:0.3", close_wait=300)
            need(figures[name]["committed"] == 60 and figures[name]["dropped"] == 0, f"{figures}")
    return figures


def row_22(world):
    """one byte in a hundred messages changes on the way, in both directions."""
    with fake_s3() as server:
        _, log = world.new_run()
        server.set_faults("flip:0.01")
        done = world.train(LOCATION, log, env=server.environment(), steps=200, close_wait=300)
        need(done.returncode == 0, done.stdout + done.stderr)
        server.set_faults("flip:0.1")
        # Whoever reads is given what was stored, or an error.
        command = [os.path.join(world.bin, "tornasole"), "export", LOCATION, "--format", "csv", "--output"]
        flipped = subprocess.run(
            [*command, world.path("flipped.csv")], env=server.environment(), capture_output=True, text=True, check=False
        )
        server.set_faults("")
        sound = subprocess.run([*command, world.path("sound.csv")], env=server.environment(), capture_output=True, check=False)
        need(sound.returncode == 0, sound.stderr)
        figures = inspect(world, server, log, done)
        need(figures["committed"] == 200, f"{figures}")
        figures["wrong"] = 0
        if os.path.exists(world.path("flipped.csv")):
            rows = set(pathlib.Path(world.path("sound.csv")).read_text(encoding="utf-8").splitlines())
            read = pathlib.Path(world.path("flipped.csv")).read_text(encoding="utf-8").splitlines()
            figures["wrong"], figures["read"] = sum(row not in rows for row in read), len(read)
        need(figures["wrong"] == 0, f"{figures}")
        return {**figures, "said": flipped.stderr[:200]}


def row_23(world):
    """secrets are in no log, message, health file or object, whatever fails."""
    home = pathlib.Path(world.path("home"))
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = AKIDTORNASOLETEST\naws_secret_access_key = {MARKER}\n", encoding="utf-8"
    )
    found, texts = [], 0
    for fault in ("", "503:0.5", "403", "expired", "nobucket", "reset:1", "flip:0.3", "lost_reply:0.3"):
        with fake_s3(fault, "--secret", MARKER) as server:
            environment = server.environment(HOME=str(home), SMDEBUG_LOG_LEVEL="debug", SMDEBUG_LOG_PATH=world.path("log.txt"))
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
                environment.pop(name)
            _, log = world.new_run()
            line = world.command(LOCATION, log, steps=10, close_wait=5)
            done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300, check=False)
            listed = subprocess.run(
                [os.path.join(world.bin, "tornasole"), "verify", LOCATION],
                env=environment, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            server.set_faults("")
            mirror = pathlib.Path(world.path(f"secrets{world.count}"))
            mirror.mkdir()
            server.control("save", str(mirror))
            said = [done.stdout, done.stderr, listed.stdout, listed.stderr, json.dumps(server.history())]
            said += [path.read_bytes().decode("latin-1") for path in mirror.rglob("*") if path.is_file()]
            if os.path.exists(world.path("log.txt")):
                said.append(pathlib.Path(world.path("log.txt")).read_text(encoding="utf-8"))
            texts += len(said)
            found += [text[:300] for text in said if MARKER in text]
    need(not found, f"{found[:2]}")
    return {"texts": texts, "found": len(found)}
