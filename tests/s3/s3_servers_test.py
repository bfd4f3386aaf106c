"""S3 end to end: the conformance suite of stores, every command, smdebug on the same bucket; on the fake server and on
versitygw.

    s3_servers_test.py --bin DIR
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from s3_servers import ROOT, TLS_FRONT, VERSITYGW, fake_s3, tls_front, versitygw

BIN = None
SMDEBUG = ROOT / ".venvs" / "smdebug" / "bin" / "python"


def run(server, *line, **more):
    return subprocess.run(
        [str(part) for part in line], env=server.environment(**more), capture_output=True, text=True, timeout=300, check=False
    )


def train(server, location, log, steps=30, **options):
    line = [BIN / "survival_train", "--out", location, "--log", log, "--steps", steps]
    for name, value in options.items():
        line += ["--" + name.replace("_", "-")] + ([] if value is True else [value])
    return run(server, *line)


def gets(history, folder):
    """The keys below a folder that were read."""
    return [entry["key"] for entry in history if entry["method"] == "GET" and f"/run/{folder}/" in entry["key"]]


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="tornasole-s3-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def tornasole(self, server, *arguments, code=0):
        done = run(server, BIN / "tornasole", *arguments)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def conform(self, server, **more):
        done = run(server, BIN / "s3_conformance", "--gtest_brief=1", **more)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED  \] [1-9]\d+ tests")

    def use_every_command(self, server):
        location = "s3://bucket/runs/a b+c=1%/run"
        done = train(server, location, self.scratch / "log", tensors=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("committed 30 dropped 0", done.stdout)
        local = self.scratch / "local"
        self.assertEqual(train(server, local, self.scratch / "log2", tensors=4).returncode, 0)
        self.assertRegex(self.tornasole(server, "ls", location), r"steps +30 \(0 to 29\)")
        self.assertIn(location, self.tornasole(server, "ls", "s3://bucket/runs"))
        self.assertRegex(self.tornasole(server, "verify", location), r"damaged +0\n")
        self.assertIn("t3", self.tornasole(server, "stats", location))
        self.tornasole(server, "show", location, "t1")
        self.tornasole(server, "diff", location, local)
        self.assertIn("29", self.tornasole(server, "tail", location))
        self.tornasole(server, "check", location)
        self.tornasole(server, "export", location, "--output", self.scratch / "all.csv", "--format", "csv")
        self.assertGreater(len((self.scratch / "all.csv").read_text().splitlines()), 100)
        again = train(server, location, self.scratch / "log3")
        self.assertEqual(again.returncode, 5, "a finished run is refused at set-up")
        self.assertIn("a finished run lives there", again.stdout + again.stderr)
        return local


class FakeServer(Case):
    def test_a_store_on_it_conforms(self):
        with fake_s3() as server:
            self.conform(server)

    def test_also_with_small_pages_and_without_conditions(self):
        with fake_s3("", "--page", "3", "--no-conditional") as server:
            # Without conditions two writers of one name are not told apart.
            self.conform(server, GTEST_FILTER="-*ExclusiveCreation*")

    def test_every_command_reads_it(self):
        with fake_s3() as server:
            self.use_every_command(server)

    def test_an_index_object_is_read_once_and_values_in_few_requests(self):
        with fake_s3() as server:
            self.assertEqual(train(server, "s3://bucket/run", self.scratch / "log", tensors=20).returncode, 0)
            server.control("forget", "")
            self.tornasole(server, "export", "s3://bucket/run", "--output", self.scratch / "x.csv", "--format", "csv")
            gets = [entry["key"] for entry in server.history() if entry["method"] == "GET" and "list-type" not in entry["query"]]
            index = [key for key in gets if "/index/" in key]
            self.assertEqual(len(index), 30)
            self.assertEqual(len(set(index)), 30)
            events = [key for key in gets if "/events/" in key]
            self.assertLessEqual(len(events), 60, "20 values of a step lie side by side: one request, or two")

    def test_no_reader_gets_an_index_object_twice(self):
        with fake_s3() as server:
            line = [BIN / "survival_train", "--out", "s3://bucket/run", "--log", self.scratch / "log", "--steps", "60"]
            line += ["--think-ms", "50"]
            training = subprocess.Popen([str(part) for part in line], env=server.environment(), stdout=subprocess.DEVNULL)
            self.addCleanup(training.wait)
            self.tornasole(server, "tail", "s3://bucket/run", "t1", "--poll", "0.1", "--timeout", "60")
            self.assertEqual(training.wait(), 0)
            asked = [entry["key"] for entry in server.history() if entry["method"] == "GET" and "/index/" in entry["key"]]
            self.assertEqual(len(set(asked)), 60)
            self.assertEqual(len(asked), 60, "each index object is read once, however often the trial looks for new ones")

    def export(self, server, location="s3://bucket/run", code=0):
        """Everything a trial holds, as text, and what was asked for to get it."""
        server.control("forget", "")
        target = self.scratch / "exported.csv"
        done = run(server, BIN / "tornasole", "export", location, "--output", target, "--format", "csv", "--overwrite")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return target.read_text(), server.history(), done.stdout + done.stderr

    def test_packs_take_the_place_of_many_index_objects(self):
        with fake_s3() as server:
            self.assertIn("committed 600", train(server, "s3://bucket/run", self.scratch / "log", steps=600, bytes=64).stdout)
            written = [entry["key"] for entry in server.history() if entry["method"] == "PUT"]
            packs = [key for key in written if "/packs/" in key]
            first = "bucket/run/tornasole/packs/000000000000-000000000255_worker_0.pack"
            self.assertEqual(packs[0], first)
            self.assertEqual(len(packs), 3)
            for key in packs:
                last_step = key.rsplit("/", 1)[1][13:25]
                index = next(place for place, name in enumerate(written) if "/index/" in name and last_step in name)
                self.assertGreater(written.index(key), index, "a pack comes after the files it repeats")
            self.assertEqual(written[-1], "bucket/run/training_job_end.ts")
            with_packs, history, _ = self.export(server)
            self.assertEqual(gets(history, "index"), [])
            self.assertEqual(sorted(gets(history, "tornasole/packs")), sorted(packs))
            self.assertRegex(self.tornasole(server, "verify", "s3://bucket/run"), r"damaged +0\n")
            verified = json.loads(self.tornasole(server, "verify", "s3://bucket/run", "--json"))
            self.assertTrue(verified["sound"])
            self.assertEqual(verified["foreign"]["count"], 0)

            server.control("put/" + first, "nothing of a pack")
            damaged, history, _ = self.export(server)
            self.assertEqual(damaged, with_packs)
            self.assertEqual(len(gets(history, "index")), 256)
            self.assertIn(first.removeprefix("bucket/run/"), self.tornasole(server, "verify", "s3://bucket/run", code=3))
            for key in packs:
                server.control("remove/" + key, "")
            without, history, _ = self.export(server)
            self.assertEqual(without, with_packs)
            self.assertEqual(len(gets(history, "index")), 600)

    def test_an_index_object_that_changed_since_its_pack_is_read_itself(self):
        with fake_s3() as server:
            self.assertIn("committed 300", train(server, "s3://bucket/run", self.scratch / "log", steps=300, bytes=64).stdout)
            server.control("save", str(self.scratch))
            local = self.scratch / "bucket" / "run"
            changed = [f"index/000000000/{step:012d}_worker_0.json" for step in (3, 280)]
            for path in changed:
                text = (local / path).read_text()
                self.assertIn('"t1"', text)
                # Without the sum of the old bytes; as long as it was.
                text = text.replace('"t1"', '"u1"').replace('"crc32c": ', '"crc32d": ')
                (local / path).write_text(text)
                server.control("put/bucket/run/" + path, text)
            gone = "index/000000000/000000000007_worker_0.json"
            (local / gone).unlink()
            server.control("remove/bucket/run/" + gone, "")
            remote, history, _ = self.export(server)
            self.assertEqual(sorted(gets(history, "index")), ["bucket/run/" + path for path in changed])
            self.assertEqual(len(gets(history, "tornasole/packs")), 2)
            on_disk, _, _ = self.export(server, local)
            self.assertEqual(remote, on_disk)
            self.assertIn("u1", remote)

    def test_packs_of_steps_that_are_not_kept_go_with_them(self):
        with fake_s3() as server:
            train(server, "s3://bucket/run", self.scratch / "log", steps=700, bytes=64, keep_steps=300)
            packs = sorted(key.rsplit("/", 1)[1] for key in server.keys() if "/packs/" in key)
            self.assertEqual([name[:25] for name in packs], ["000000000256-000000000511", "000000000512-000000000699"])
            text, history, _ = self.export(server)
            self.assertEqual(gets(history, "index"), [])
            self.assertIn("699", text)
            self.assertRegex(self.tornasole(server, "ls", "s3://bucket/run"), r"steps +300 \(400 to 699\)")

    def test_several_workers_have_packs_of_their_own(self):
        with fake_s3() as server:
            processes = []
            for rank in range(3):
                line = [BIN / "survival_train", "--out", "s3://bucket/run", "--log", self.scratch / f"log{rank}", "--steps", "100"]
                line += ["--rank", str(rank), "--world", "3", "--bytes", "64"]
                processes.append(subprocess.Popen([str(part) for part in line], env=server.environment(), stdout=subprocess.DEVNULL))
            for process in processes:
                self.assertEqual(process.wait(120), 0)
            remote, history, _ = self.export(server)
            self.assertEqual(gets(history, "index"), [])
            self.assertEqual(len(gets(history, "tornasole/packs")), 3)
            server.control("save", str(self.scratch))
            on_disk, _, _ = self.export(server, self.scratch / "bucket" / "run")
            self.assertEqual(remote, on_disk)

    def test_packs_of_a_run_that_was_away_arrive_with_the_rest(self):
        with fake_s3() as server:
            spool = self.scratch / "spool"
            line = [BIN / "survival_train", "--out", "s3://bucket/run", "--log", self.scratch / "log", "--steps", "700"]
            line += ["--think-ms", "10", "--spool", spool, "--close-wait", "1", "--bytes", "64"]
            training = subprocess.Popen([str(part) for part in line], env=server.environment(), stdout=subprocess.PIPE, text=True)
            while not any("000000000100_worker_0.json" in key for key in server.keys()):
                time.sleep(0.05)
            server.set_faults("503:1")
            out, _ = training.communicate(timeout=120)
            self.assertIn("committed 700 dropped 0", out)
            server.set_faults("")
            self.tornasole(server, "upload", spool)
            remote, history, _ = self.export(server)
            # Of what waited on the disk nobody knew yet what the store would call it: it is read itself.
            packed = 700 - len(gets(history, "index"))
            self.assertGreaterEqual(packed, 100)
            self.assertLess(packed, 700)
            server.control("save", str(self.scratch))
            self.assertEqual(remote, self.export(server, self.scratch / "bucket" / "run")[0])
            self.assertTrue(json.loads(self.tornasole(server, "verify", "s3://bucket/run", "--json"))["sound"])

    def test_requests_are_counted_and_told(self):
        with fake_s3() as server:
            self.assertEqual(train(server, "s3://bucket/run", self.scratch / "log").returncode, 0)
            history = server.history()
            told = json.loads(self.tornasole(server, "ls", "s3://bucket/run", "--json"))["requests"]
            # The last word about them is not counted in itself, nor is the end marker after it.
            puts = sum(entry["method"] == "PUT" for entry in history)
            self.assertLessEqual(abs(told["put"] - puts), 2, f"{told} of {puts}")
            self.assertLessEqual(told["put"], 2 * 30 + 8, "a step is two of them")
            self.assertRegex(self.tornasole(server, "ls", "s3://bucket/run"), r"requests +\d+ put, .* by its writers")
            server.control("forget", "")
            verified = json.loads(self.tornasole(server, "verify", "s3://bucket/run", "--json"))["requests"]
            gets = sum(entry["method"] == "GET" and "list-type" not in entry["query"] for entry in server.history())
            self.assertLessEqual(abs(verified["get"] - gets), 3)
            self.assertRegex(self.tornasole(server, "verify", "--verbose", "s3://bucket/run"), r"requests +\d+ get, \d+ list")

    def test_a_spool_goes_where_it_is_told(self):
        with fake_s3() as server:
            spool, copy = self.scratch / "spool", self.scratch / "copy"
            line = [BIN / "survival_train", "--out", "s3://bucket/run", "--log", self.scratch / "log", "--steps", "400"]
            line += ["--think-ms", "20", "--spool", spool, "--close-wait", "1"]
            training = subprocess.Popen([str(part) for part in line], env=server.environment(), stdout=subprocess.PIPE, text=True)
            while not any("/index/" in key for key in server.keys()):
                time.sleep(0.05)
            server.set_faults("503:1")
            out, _ = training.communicate(timeout=120)
            self.assertIn("committed 400 dropped 0", out)
            waiting = json.loads(self.tornasole(server, "upload", spool, "--dry-run", "--json"))["spools"]
            self.assertEqual([one["location"] for one in waiting], ["s3://bucket/run"])
            self.tornasole(server, "upload", self.scratch / "nothing", code=2)
            self.tornasole(server, "upload", spool, code=1)  # the store is still away, and nothing is lost
            server.set_faults("")
            server.control("save", str(self.scratch))
            shutil.copytree(self.scratch / "bucket" / "run", copy)
            self.assertIn("sent ", self.tornasole(server, "upload", spool, copy))
            self.assertFalse(any(path.is_file() for path in spool.rglob("*")))
            self.assertRegex(self.tornasole(server, "ls", copy), r"run: ended|copy: ended")
            self.assertRegex(self.tornasole(server, "ls", copy), r"steps +400 \(0 to 399\)")
            self.assertRegex(self.tornasole(server, "verify", copy), r"damaged +0\n +missing +0\n")

    def test_a_clock_that_is_off_by_a_day_is_put_right(self):
        with fake_s3("", "--clock-offset-s", "-86400") as server:
            done = train(server, "s3://bucket/run", self.scratch / "log")
            self.assertIn("committed 30 dropped 0", done.stdout, done.stderr)

    def test_what_is_refused_is_said_at_set_up(self):
        cases = (
            ("a bucket that is not there", "s3://nobody-made-this/run", {}, "'nobody-made-this' does not exist"),
            ("a wrong key", "s3://bucket/run", {"AWS_SECRET_ACCESS_KEY": "MARKERwrong"}, "access refused"),
            ("no key", "s3://bucket/run", {"AWS_ACCESS_KEY_ID": ""}, "no AWS credentials"),
            ("another host in plain text", "s3://bucket/run", {"AWS_ENDPOINT_URL_S3": "http://192.0.2.1"}, "plain http"),
            ("no service", "s3://bucket/run", {"AWS_ENDPOINT_URL_S3": "gopher://x"}, "http:// or https://"),
            ("a bad bucket", "s3://b/run", {}, "cannot be a bucket"),
        )
        with fake_s3() as server:
            for what, location, more, message in cases:
                with self.subTest(what):
                    done = run(server, BIN / "tornasole", "ls", location, **more)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(message, done.stdout + done.stderr)
                    self.assertNotIn("MARKER", done.stdout + done.stderr)
            self.assertEqual(server.keys(), {})

    def test_a_process_that_never_uses_s3_does_not_map_libcurl(self):
        with fake_s3() as server:
            line = ["strace", "-f", "-e", "trace=openat", BIN / "tornasole", "ls", self.scratch]
            self.assertNotIn("libcurl", run(server, *line).stderr)
            line[-1] = "s3://bucket/none"
            self.assertIn("libcurl", run(server, *line).stderr)


@unittest.skipUnless(VERSITYGW.exists() or os.environ.get("CI"), "versitygw is missing (make env NAME=s3)")
class RealServer(Case):
    def test_a_store_on_it_conforms(self):
        with versitygw(self.scratch) as server:
            self.conform(server)

    def test_every_command_reads_it_and_the_bytes_are_those_of_a_directory(self):
        with versitygw(self.scratch) as server:
            local = self.use_every_command(server)
            remote = server.data / "runs" / "a b+c=1%" / "run"
            for folder in ("events", "index"):
                names = sorted(path.relative_to(local) for path in (local / folder).rglob("*") if path.is_file())
                self.assertEqual(len(names), 30)
                there = sorted(path.relative_to(remote) for path in (remote / folder).rglob("*") if path.is_file())
                self.assertEqual(names, there)

    def test_packs_of_a_real_service_stand_for_what_they_repeat(self):
        with versitygw(self.scratch) as server:
            self.assertIn("committed 600", train(server, "s3://bucket/run", self.scratch / "log", steps=600, bytes=64).stdout)
            run_directory = server.data / "run"
            packs = sorted((run_directory / "tornasole" / "packs").iterdir())
            self.assertEqual(len(packs), 3)

            def read():
                target = self.scratch / "exported.csv"
                self.tornasole(server, "export", "s3://bucket/run", "--output", target, "--format", "csv", "--overwrite")
                return target.read_text()

            with_packs = read()
            self.assertTrue(json.loads(self.tornasole(server, "verify", "s3://bucket/run", "--json"))["sound"])
            # Rotten on the service's own disk: it still calls the object by its old tag, and nobody reads it.
            index = run_directory / "index" / "000000000" / "000000000300_worker_0.json"
            sound = index.read_bytes()
            with index.open("r+b") as file:
                file.write(b"#" * len(sound))
            self.assertEqual(read(), with_packs)
            with index.open("r+b") as file:
                file.write(sound)
            packs[1].write_bytes(packs[1].read_bytes()[:1000])
            self.assertEqual(read(), with_packs)
            for pack in packs:
                pack.unlink()
            self.assertEqual(read(), with_packs)

    def test_an_interrupted_run_goes_on_in_the_same_prefix(self):
        with versitygw(self.scratch) as server:
            location, index = "s3://bucket/run", server.data / "run" / "index"
            for attempt in range(3):
                line = [BIN / "survival_train", "--out", location, "--log", self.scratch / "log", "--steps", "100000"]
                line += ["--think-ms", "2"] + (["--resume"] if attempt else [])
                published = len(list(index.rglob("*.json")))
                training = subprocess.Popen([str(part) for part in line], env=server.environment())
                while len(list(index.rglob("*.json"))) < published + 20 and training.poll() is None:
                    time.sleep(0.02)
                training.kill()
                training.wait()
            refused = train(server, location, self.scratch / "log2")
            self.assertEqual(refused.returncode, 5, refused.stderr)
            self.assertIn("resume=True", refused.stderr)
            done = train(server, location, self.scratch / "log2", steps=5, resume=True)
            self.assertIn("committed 5 dropped 0", done.stdout, done.stderr)
            steps = sorted(int(path.name.split("_")[0]) for path in index.rglob("*.json"))
            self.assertEqual(steps, list(range(len(steps))))
            modes = json.loads(self.tornasole(server, "ls", location, "--json"))["steps"]
            self.assertEqual([mode["last"] for mode in modes], [len(steps) - 1] * 2, "modes go on with their own numbers")

    @unittest.skipUnless(SMDEBUG.exists() or os.environ.get("CI"), "the environment smdebug is missing")
    def test_smdebug_reads_what_we_wrote_and_we_read_what_it_wrote(self):
        checker = ROOT / "tests" / "survival" / "smdebug_check.py"
        with versitygw(self.scratch) as server:
            self.assertEqual(train(server, "s3://bucket/ours", self.scratch / "log", steps=100).returncode, 0)
            self.assertEqual(len(list((server.data / "ours" / "tornasole" / "packs").iterdir())), 1)
            done = run(server, SMDEBUG, checker, "s3://bucket/ours", AWS_DEFAULT_REGION="us-east-1")
            answer = json.loads(done.stdout.strip().splitlines()[-1])
            self.assertEqual(answer["problems"], [])
            self.assertGreater(answer["values"], 30)

            writer = pathlib.Path(__file__).with_name("smdebug_writer.py")
            done = run(server, SMDEBUG, writer, server.data / "theirs")
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            expected = json.loads(done.stdout.strip().splitlines()[-1])
            listed = self.tornasole(server, "ls", "s3://bucket/theirs")
            self.assertRegex(listed, rf"steps +{expected['steps']} ")
            shown = json.loads(self.tornasole(server, "stats", "s3://bucket/theirs", "--json"))
            self.assertIn(f"{expected['last_mean']:.6g}"[:6], json.dumps(shown))


@unittest.skipUnless(TLS_FRONT.exists() or os.environ.get("CI"), "tls_front is missing (make env NAME=s3)")
class Protocols(Case):
    def use(self, protocol):
        """A run that is written and read over TLS; what it came by."""
        with fake_s3() as backend, tls_front(backend, self.scratch, protocol) as server:
            done = train(server, "s3://bucket/run", self.scratch / "log", steps=60)
            self.assertIn("committed 60 dropped 0", done.stdout, done.stderr)
            self.assertRegex(self.tornasole(server, "verify", "s3://bucket/run"), r"damaged +0\n")
            stranger = run(server, BIN / "tornasole", "ls", "s3://bucket/run", AWS_CA_BUNDLE="")
            self.assertNotEqual(stranger.returncode, 0, "a certificate that nobody vouches for")
            self.assertIn("certificate", stranger.stdout + stranger.stderr)
            return server.protocols()

    def test_http_2_is_used_where_a_server_offers_it(self):
        seen = self.use("h2")
        self.assertEqual(list(seen["requests"]), ["HTTP/2.0"])
        self.assertGreater(seen["requests"]["HTTP/2.0"], 200)
        self.assertLess(seen["connections"], 60, "a connection is kept")

    def test_http_1_1_is_used_where_it_does_not(self):
        seen = self.use("http/1.1")
        self.assertEqual(list(seen["requests"]), ["HTTP/1.1"])
        self.assertGreater(seen["requests"]["HTTP/1.1"], 200)

    def test_plain_http_beyond_this_host_takes_a_switch(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
            except OSError:
                self.skipTest("this host has no address but its own loopback")
            address = probe.getsockname()[0]
        with fake_s3("", "--host", address) as server:
            self.assertIn(f"http://{address}:", server.endpoint)
            refused = train(server, "s3://bucket/run", self.scratch / "log")
            self.assertEqual(refused.returncode, 5, refused.stdout)
            self.assertIn("plain http", refused.stderr)
            self.assertEqual(server.history(), [])
            for value in ("", "0", "true"):
                done = run(server, BIN / "tornasole", "ls", "s3://bucket/run", TORNASOLE_S3_ALLOW_HTTP=value)
                self.assertIn("plain http", done.stdout + done.stderr)
            self.assertEqual(server.history(), [])
            more = {"TORNASOLE_S3_ALLOW_HTTP": "1"}
            line = [BIN / "survival_train", "--out", "s3://bucket/run", "--log", self.scratch / "log", "--steps", "3"]
            done = run(server, *line, **more)
            self.assertIn("committed 3 dropped 0", done.stdout, done.stderr)
            self.assertGreater(len(server.history()), 6)


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    arguments, rest = parser.parse_known_args()
    BIN = pathlib.Path(arguments.bin).resolve()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
