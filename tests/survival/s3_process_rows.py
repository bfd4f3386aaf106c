"""Rows 36, 37, 38 and 40 in a bucket: live readers, forks, many workers, clocks; and runs that were interrupted."""

import json
import os
import subprocess
import time

from s3_rows import LOCATION, check_order, inspect
from s3_servers import fake_s3
from survival_world import logged_steps, need, numbers, wait_until


def command(world, server, *arguments):
    line = [os.path.join(world.bin, "tornasole"), *arguments]
    return subprocess.run(line, env=server.environment(), capture_output=True, text=True, timeout=300, check=False)


def index_keys(server):
    return sorted(key for key in server.keys() if "/index/" in key)


def row_7_s3(world):
    """a run killed three times and resumed each time in the same prefix; without resume it is refused."""
    with fake_s3() as server:
        _, log = world.new_run()
        published = 0
        for round_ in range(3):
            line = world.command(LOCATION, log, steps=100_000, think_ms=2, **({"resume": True} if round_ else {}))
            process = world.start(line, env=server.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            wait_until(lambda: len(index_keys(server)) > published + 20, process, "twenty more steps")
            process.kill()
            process.wait()
            published = len(index_keys(server))
            refused = world.train(LOCATION, log, env=server.environment(), steps=1)
            need(refused.returncode == 5 and "resume=True" in refused.stderr, f"{refused}")
            need(len(index_keys(server)) == published, "a refused run wrote something")
        whole = [key[len("bucket/run/index/") :].removesuffix(".json") for key in index_keys(server)]
        # Values without an index belong to no step.
        published = {f"bucket/run/{folder}" for name in whole for folder in (f"index/{name}.json", f"events/{name[10:22]}/{name[10:]}.tfevents")}
        before = {key: value for key, value in server.keys().items() if key in published}
        need(len(before) == 2 * len(whole), f"{len(before)} objects of {len(whole)} steps")
        done = world.train(LOCATION, log, env=server.environment(), steps=5, resume=True)
        need(done.returncode == 0 and "committed 5 dropped 0" in done.stdout, f"{done}")
        after = server.keys()
        need(all(after[key] == value for key, value in before.items()), "a published object was replaced")
        steps = [int(key.rsplit("/", 1)[1].split("_")[0]) for key in index_keys(server)]
        need(steps == list(range(len(steps))), "a step is missing between two attempts")
        modes = json.loads(command(world, server, "ls", LOCATION, "--json").stdout)["steps"]
        # Each mode goes on after its own last step: no number of it comes twice.
        need([(mode["count"], mode["last"]) for mode in modes] == [(len(steps), len(steps) - 1)] * 2, f"{modes}")
        check_order(server.history())
        return {"steps": len(steps), "attempts": 4, **numbers(done)}


def live_readers(world, seconds, readers):
    with fake_s3() as server:
        _, log = world.new_run()
        steps = seconds * 20
        line = world.command(LOCATION, log, steps=steps, think_ms=50, bytes=4000, close_wait=100)
        writer = world.start(line, env=server.environment(), stdout=subprocess.PIPE, text=True)
        reader = [os.path.join(world.bin, "live_reader"), LOCATION]
        following = [
            world.start(reader, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(readers)
        ]
        out, _ = writer.communicate(timeout=seconds * 10 + 300)
        for process in following:
            stdout, stderr = process.communicate(timeout=300)
            need(process.returncode == 0, f"live_reader: {stdout} {stderr[-500:]}")
            answer = json.loads(stdout)
            need(answer["steps"] == steps and answer["violations"] == 0, f"{answer} of {steps} steps")
        asked = {}
        for entry in server.history():
            if entry["method"] == "GET" and "/index/" in entry["key"]:
                asked[entry["key"]] = asked.get(entry["key"], 0) + 1
        need(max(asked.values()) <= readers, "an index object was read more than once by a reader")
        return {**inspect(world, server, log, subprocess.CompletedProcess(line, 0, out, "")), "readers": readers}


def row_36_s3(world):
    """two live readers of a bucket for ten seconds: every step, right, each index object read once."""
    return live_readers(world, 10, 2)


def row_36_s3_full(world):
    """four live readers of a bucket for five minutes."""
    return live_readers(world, 300, 4)


def row_37_s3(world):
    """fork, of a run in a bucket: children neither write nor hang."""
    with fake_s3() as server:
        _, log = world.new_run()
        done = world.train(LOCATION, log, env=server.environment(), steps=50, fork=8)
        need(done.returncode == 0 and "child" not in done.stderr, done.stderr)
        return inspect(world, server, log, done)


def row_38_s3(world):
    """eight processes in one prefix, one killed, one ends early: the end marker comes after the last."""
    with fake_s3() as server:
        logs = [world.path(f"log-{rank}") for rank in range(8)]
        processes = []
        for rank in range(8):
            steps = {2: 20, 5: 100_000}.get(rank, 200)
            line = world.command(LOCATION, logs[rank], steps=steps, think_ms=20, rank=rank, world=8, close_wait=100)
            processes.append(world.start(line, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        wait_until(lambda: len([key for key in index_keys(server) if "worker_5" in key]) > 10, processes[5], "steps of worker 5")
        processes[5].kill()
        dead = len([key for key in index_keys(server) if "worker_5" in key])
        lost = 0
        for rank, process in enumerate(processes):
            out, err = process.communicate(timeout=300)
            if rank == 5:
                continue
            need(process.returncode == 0, f"worker {rank}: {out} {err}")
            steps = len([key for key in index_keys(server) if f"worker_{rank}." in key])
            lost += len(logged_steps(logs[rank])) - steps
        need(lost == 0, f"{lost} steps lost")
        history = [entry for entry in server.history() if entry["method"] == "PUT" and entry["status"] == 200]
        ends = [place for place, entry in enumerate(history) if entry["key"].endswith("training_job_end.ts")]
        last_index = max(place for place, entry in enumerate(history) if "/index/" in entry["key"])
        need(len(ends) >= 1 and ends[0] > last_index, "the end marker is missing, or came before the last step")
        begin = time.monotonic()
        listed = json.loads(command(world, server, "ls", LOCATION, "--json").stdout)
        need(len(listed["workers"]) == 8 and listed["state"] == "ended", f"{listed['workers']} {listed['state']}")
        open_s = round(time.monotonic() - begin, 2)
        verified = json.loads(command(world, server, "verify", LOCATION, "--json").stdout)
        need(verified["sound"] and verified["steps"] >= 200, f"{verified}")
        whole = verified["steps"] - verified["incomplete"]
        need(10 < whole <= min(20, dead + 1), f"{whole} steps are whole, of {verified['steps']}")
        check_order(server.history())
        return {"lost": lost, "whole": whole, "incomplete": verified["incomplete"], "open_s": open_s}


def row_40_s3(world):
    """a service whose clock is an hour ahead, an hour and a day behind."""
    figures = {}
    for offset in (3600, -3600, -86400):
        with fake_s3("", "--clock-offset-s", str(offset)) as server:
            _, log = world.new_run()
            done = world.train(LOCATION, log, env=server.environment(), steps=30)
            need("committed 30 dropped 0" in done.stdout, f"{offset}: {done.stdout} {done.stderr}")
            figures[str(offset)] = inspect(world, server, log, done)["close"]
    return figures
