#!/usr/bin/env python3
"""tornasole rule: what it finds, what it does about it, and its exit codes."""

import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from cli_program import FIXTURES, PROGRAM, WRITER, ProgramTest, environment, main, strict_json

MLP = os.path.join(FIXTURES, "pytorch_mlp", "trial")
TREES = os.path.join(FIXTURES, "xgboost_full", "trial")


def configuration(rule, name=None, **parameters):
    inner = {"RuleParameters": {"rule_to_invoke": rule, **parameters}}
    if name:
        inner["RuleConfigurationName"] = name
    return {"DebugRuleConfiguration": inner}


class RuleTest(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def read_json(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return strict_json(file.read())

    def rule(self, *arguments, code=0, **settings):
        result = self.run_program("rule", *arguments, **settings)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def json_of(self, *arguments, code=0, **settings):
        result = self.rule(*arguments, "--json", code=code, **settings)
        return strict_json(result.stdout)


class Findings(RuleTest):
    def test_a_sick_run(self):
        sick = self.written("sick")
        result = self.rule(sick, "ExplodingTensor", code=10)
        self.assertEqual(result.stderr, "")
        self.assertIn("ExplodingTensor: condition met at 2 steps, 6 steps looked at\n", result.stdout)
        self.assertIn("  steps    4, 5\n", result.stdout)
        self.assertIn("  tensors  loss (2), weight (2)\n", result.stdout)
        self.assertIn("  newest of 4 violations\n", result.stdout)
        self.assertIn("loss: 1 NaN, 0 +Inf, 0 -Inf", result.stdout)
        self.assertTrue(result.stdout.endswith("\nended: all known steps\n"), result.stdout)

    def test_a_healthy_run(self):
        result = self.rule(self.written("healthy"), "ExplodingTensor")
        self.assertIn("ExplodingTensor: condition not met, 6 steps looked at\n", result.stdout)

    def test_a_run_of_smdebug(self):
        self.assertIn("condition not met", self.rule(MLP, "ExplodingTensor").stdout)
        answer = self.json_of(MLP, "VanishingGradient", "--threshold", "1e9", code=10)
        self.assertTrue(answer["rules"][0]["steps_met"])

    def test_a_run_without_what_the_rule_needs(self):
        result = self.rule(self.written("healthy"), "VanishingGradient")
        self.assertIn("VanishingGradient: nothing to look at, no step has a tensor the rule needs\n", result.stdout)

    def test_json(self):
        sick = self.written("sick")
        answer = self.json_of(sick, "exploding_tensor", "--only_nan", "True", code=10)
        self.assertEqual(answer["trial"], sick)
        self.assertEqual(answer["ended_because"], "all known steps")
        self.assertEqual(answer["last_step"], 5)
        (rule,) = answer["rules"]
        self.assertEqual((rule["name"], rule["status"]), ("ExplodingTensor", "IssuesFound"))
        self.assertEqual((rule["steps_evaluated"], rule["steps_met"]), (6, [4, 5]))
        report = rule["report"]
        self.assertEqual(list(report), ["RuleTriggered", "Violations", "Datapoints", "RuleParameters", "Details"])
        self.assertEqual((report["RuleTriggered"], report["Violations"]), (2, 3))
        self.assertIn("only_nan:True", report["RuleParameters"])

    def test_options_and_arguments_say_the_same(self):
        sick = self.written("sick")
        one = self.json_of(sick, "ExplodingTensor", code=10)
        self.assertEqual(one, self.json_of("--trial-dir", sick, "--rule-name", "explodingtensor", code=10))
        self.assertEqual(one, self.json_of("--rule-name=Exploding_Tensor", sick, code=10))
        dashed = self.json_of("--only-nan", "True", sick, "ExplodingTensor", code=10)
        self.assertEqual(dashed, self.json_of(sick, "ExplodingTensor", "--only_nan=True", code=10))
        self.assertNotEqual(dashed, one)

    def test_steps(self):
        sick = self.written("sick")
        for bounds, steps in (
            (("--start-step", "5"), [5]),
            (("--end-step", "5"), [4]),
            (("--start-step", "1", "--end-step", "3"), []),
            (("--raise-rule-eval-cond-exception",), [4]),
            (("--raise-rule-eval-cond-exception", "True"), [4]),
            (("--raise-rule-eval-cond-exception", "false"), [4, 5]),
        ):
            with self.subTest(bounds):
                answer = self.json_of(sick, "ExplodingTensor", *bounds, code=10 if steps else 0)
                self.assertEqual(answer["rules"][0]["steps_met"], steps)

    def test_workers(self):
        sick = self.written("sick")
        for which in ("all", "first", "worker_0"):
            self.assertEqual(self.json_of(sick, "ExplodingTensor", "--workers", which, code=10)["last_step"], 5)
        result = self.rule(sick, "ExplodingTensor", "--workers", "worker_0,other", code=2)
        self.assertIn('no worker "other"', result.stderr)

    def test_a_rule_that_cannot_go_on(self):
        reason = "rule Confusion: full_shap/f0 has 30 samples and predictions has 12; both must have as many"
        call = (TREES, "Confusion", "--labels", "full_shap/f0", "--labels_collection", "full_shap")
        self.assertIn(f"  error   {reason}\n", self.rule(*call, code=1).stdout)
        (rule,) = self.json_of(*call, "--report", self.path("out"), code=1)["rules"]
        self.assertEqual((rule["status"], rule["error"]), ("Error", reason))
        status = self.read_json("out", "status.json")
        self.assertEqual((status["RuleEvaluationStatus"], status["StatusDetails"]), ("Error", reason))

    def test_a_terminal_shows_progress_and_leaves_nothing_behind(self):
        code, output = self.on_terminal("rule", self.written("large"), "ExplodingTensor")
        self.assertEqual(code, 0, output)
        self.assertIn(b"condition not met, 250 steps looked at", output.split(b"\x1b[K")[-1])


class BadUse(RuleTest):
    def test_what_is_refused_and_how(self):
        sick = self.written("sick")
        config = self.write("rules.json", configuration("ExplodingTensor"))
        for arguments, told in (
            ((), "no rule: give its name"),
            ((sick,), "no rule: give its name"),
            (("--rule-name", "ExplodingTensor"), "no trial: give the directory"),
            ((sick, "Exploding"), 'no rule "Exploding"; rules: VanishingGradient, ExplodingTensor'),
            ((sick, "ExplodingTensor", "--threshold", "1"), 'no parameter "threshold"; it has: collection_names'),
            ((sick, "ExplodingTensor", "--thresold", "1"), 'no parameter "thresold"; it has: collection_names'),
            ((sick, "ExplodingTensor", "--thresold=1"), 'no parameter "thresold"; it has: collection_names'),
            ((sick, "ExplodingTensor", "--only_nan", "maybe"), 'only_nan is "maybe"; it must be True, true, False or'),
            ((sick, "VanishingGradient", "--threshold", "low"), 'threshold is "low"; it must be a number'),
            ((sick, "ExplodingTensor", "more"), '"more" is one argument too many'),
            ((sick, "ExplodingTensor", "--tensor_regex", "("), "("),
            ((sick, "ExplodingTensor", "--rule-name", "VanishingGradient"), "the rule is given twice"),
            ((sick, "ExplodingTensor", "--config", config), "give one of them"),
            ((sick, "--config", config, "--threshold", "1"), "--threshold: the parameters of the rules of --config"),
            ((sick, "--config", self.path("gone.json")), f"--config {self.path('gone.json')}: No such file"),
            ((sick, "--config", self.directory), f"--config {self.directory}: is a directory"),
            ((sick, "--config", "/dev/zero"), "--config /dev/zero: is not a regular file"),
            ((sick, "ExplodingTensor", "--actions", "stop it"), "rule ExplodingTensor: actions must be JSON"),
            ((sick, "ExplodingTensor", "--start-step", "3", "--end-step", "3"), "--end-step 3 is not after"),
            ((sick, "ExplodingTensor", "--start-step", "-1"), "--start-step"),
            ((sick, "ExplodingTensor", "--raise-rule-eval-cond-exception", "yes"), '"yes" is none of True'),
            ((sick, "ExplodingTensor", "--follow", "--no-follow"), "--follow"),
            ((sick, "ExplodingTensor", "--other-trials", self.path("gone")), "no such directory"),
            ((self.path("gone"), "ExplodingTensor"), "no such directory"),
            ((self.directory, "ExplodingTensor"), "is no trial"),
        ):
            with self.subTest(arguments):
                result = self.rule(*arguments, code=2)
                self.assertEqual(result.stdout, "")
                self.assertIn(told, result.stderr)

    def test_a_mistake_in_the_configuration_names_file_and_key(self):
        config = self.write("rules.json", [configuration("ExplodingTensor"), configuration("Explode")])
        result = self.rule("--trial-dir", self.written("sick"), "--config", config, code=2)
        self.assertIn("rules.json:1: [1].DebugRuleConfiguration.RuleParameters.rule_to_invoke: no rule", result.stderr)

    def test_a_rule_of_the_configuration_that_cannot_be_made_is_told_with_its_place(self):
        config = self.write("rules.json", [configuration("ExplodingTensor"), configuration("SimilarAcrossRuns")])
        result = self.rule("--trial-dir", self.written("sick"), "--config", config, code=2)
        self.assertIn("rules.json:1: [1].DebugRuleConfiguration: rule SimilarAcrossRuns: 0 other trials", result.stderr)

    def test_errors_as_json(self):
        answer = self.json_of(self.path("gone"), "ExplodingTensor", code=2)
        self.assertEqual(answer["error"]["code"], "not found")

    def test_a_report_that_cannot_be_written(self):
        self.write("file", "")
        result = self.rule(self.written("sick"), "ExplodingTensor", "--report", self.path("file", "out"), code=1)
        self.assertIn("file/out", result.stderr)


class Listing(RuleTest):
    def test_all_rules(self):
        result = self.rule("--list-rules")
        self.assertRegex(result.stdout, r"(?m)^deep learning\n")
        self.assertRegex(result.stdout, r"(?m)^  VanishingGradient +\w")
        rules = self.json_of("--list-rules")["rules"]
        for rule in rules:
            self.assertEqual(list(rule), ["name", "group", "summary", "parameters"])
            self.assertIn("  " + rule["name"], result.stdout)

    def test_one_rule(self):
        for arguments in (("--rule-name", "vanishing_gradient"), ("VanishingGradient",)):
            result = self.rule("--list-rules", *arguments)
            self.assertIn("VanishingGradient (deep learning)\n", result.stdout)
            self.assertRegex(result.stdout, r"(?m)^  --threshold +number +1e-0?7|0\.0000001 +\w")
        (rule,) = self.json_of("--list-rules", "VanishingGradient")["rules"]
        self.assertEqual(rule["parameters"][0]["name"], "threshold")
        self.rule("--list-rules", "Vanish", code=2)

    def test_every_parameter_of_every_rule_is_an_option(self):
        sick = self.written("sick")
        for rule in self.json_of("--list-rules")["rules"]:
            for parameter in rule["parameters"]:
                with self.subTest(rule["name"], parameter=parameter["name"]):
                    # Another rule's is refused as a parameter, never as an option nobody knows.
                    result = self.run_program("rule", sick, rule["name"], "--" + parameter["name"], "1", "--no-follow")
                    self.assertNotIn("no parameter", result.stderr)
                    self.assertNotIn("not expected", result.stderr)


class Reports(RuleTest):
    def test_one_rule(self):
        self.rule(self.written("sick"), "ExplodingTensor", "--report", self.path("out"), code=10)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["ExplodingTensor.json", "status.json"])
        self.assertEqual(self.read_json("out", "ExplodingTensor.json")["RuleTriggered"], 2)
        self.assertEqual(
            self.read_json("out", "status.json"),
            {"RuleConfigurationName": "ExplodingTensor", "RuleEvaluationStatus": "IssuesFound"},
        )

    def test_a_file(self):
        self.rule(self.written("healthy"), "ExplodingTensor", "--report", self.path("a", "mine.json"))
        self.assertEqual(sorted(os.listdir(self.path("a"))), ["mine.json", "status.json"])
        self.assertEqual(self.read_json("a", "status.json")["RuleEvaluationStatus"], "NoIssuesFound")

    def test_several_rules_of_a_configuration_in_one_pass(self):
        config = self.write(
            "rules.json",
            [
                configuration("ExplodingTensor", "nan-only", only_nan="True"),
                configuration("ExplodingTensor", tensor_regex="^healthy$"),
                configuration("VanishingGradient", threshold="1e-6"),
            ],
        )
        sick = self.written("sick")
        answer = self.json_of(sick, "--config", config, "--report", self.path("out"), code=10)
        self.assertEqual(
            [(rule["name"], rule["status"], rule["steps_met"]) for rule in answer["rules"]],
            [
                ("nan-only", "IssuesFound", [4, 5]),
                ("ExplodingTensor", "NoIssuesFound", []),
                ("VanishingGradient", "NoIssuesFound", []),
            ],
        )
        names = [status["RuleConfigurationName"] for status in self.read_json("out", "status.json")]
        self.assertEqual(names, ["nan-only", "ExplodingTensor", "VanishingGradient"])
        self.assertEqual(self.read_json("out", "nan-only.json"), answer["rules"][0]["report"])
        result = self.rule(sick, "--config", config, "--report", self.path("one.json"), code=2)
        self.assertIn("there are 3 rules and one report file", result.stderr)


    def test_files_of_a_rule(self):
        self.rule(TREES, "CreateXgboostReport", "--report", self.path("out"))
        self.assertEqual(
            sorted(os.listdir(self.path("out"))),
            ["CreateXgboostReport.json", "status.json", "xgboost_report.html", "xgboost_report.json"],
        )
        self.assertTrue(self.read_json("out", "xgboost_report.json"))
        result = self.rule(TREES, "CreateXgboostReport", code=2)
        self.assertIn("rule CreateXgboostReport writes files: say where to, by --report DIR", result.stderr)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Actions(RuleTest):
    def test_a_file_once_and_repeated(self):
        actions = [
            {"name": "file", "path": self.path("once")},
            {"name": "file", "path": self.path("always"), "repeat": True},
            {"name": "dance"},
        ]
        result = self.rule(self.written("sick"), "ExplodingTensor", "--actions", json.dumps(actions), code=10)
        self.assertIn('warning: an action is left out: no action is called "dance"', result.stderr)
        for name, steps in (("once", [4]), ("always", [4, 5])):
            with open(self.path(name), encoding="utf-8") as file:
                self.assertEqual([strict_json(line)["step"] for line in file], steps)

    def test_each_rule_of_a_configuration_has_its_own(self):
        own = json.dumps({"name": "file", "path": self.path("own")})
        rules = [configuration("ExplodingTensor", "a"), configuration("ExplodingTensor", "b", action_json=own)]
        config = self.write("rules.json", rules)
        actions = json.dumps({"name": "file", "path": self.path("common")})
        self.rule(self.written("sick"), "--config", config, "--actions", actions, code=10)
        for name, rule in (("common", "a"), ("own", "b")):
            with open(self.path(name), encoding="utf-8") as file:
                self.assertEqual([strict_json(line)["rule"] for line in file], [rule])

    def test_the_notifier_of_the_option_and_of_the_environment(self):
        sick = self.written("sick")
        actions = json.dumps({"name": "email", "endpoint": "Me@Example.com"})
        result = self.rule(sick, "ExplodingTensor", "--actions", actions, code=10)
        self.assertIn("no notifier is configured", result.stderr)
        self.assertEqual(self.json_of(sick, "ExplodingTensor", "--actions", actions, code=10)["undelivered_actions"], 1)
        notifier = self.write("notifier", f'#!/bin/sh\nprintf "%s|" "$@" > {self.path("sent")}\n')
        os.chmod(notifier, 0o755)
        for settings in ({"variables": {"TORNASOLE_NOTIFIER": notifier}}, {}):
            extra = () if settings else ("--notifier", notifier)
            self.rule(sick, "ExplodingTensor", "--actions", actions, *extra, code=10, **settings)
            with open(self.path("sent"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "email|Me@Example.com|SMDebugRule:ExplodingTensor fired|")
            os.remove(self.path("sent"))

    def serve(self, context=None):
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.bodies = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_a_webhook(self):
        server = self.serve()
        actions = json.dumps({"name": "webhook", "url": f"http://127.0.0.1:{server.server_port}/hook"})
        result = self.rule(self.written("sick"), "ExplodingTensor", "--actions", actions, code=10)
        self.assertEqual(result.stderr, "")
        (body,) = server.bodies
        self.assertEqual(strict_json(body)["rule"], "ExplodingTensor")

    @unittest.skipUnless(shutil.which("curl") and shutil.which("openssl"), "needs curl, and openssl for a certificate")
    def test_a_webhook_over_https_of_a_server_that_is_trusted(self):
        key, certificate = self.path("key.pem"), self.path("certificate.pem")
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout".split()
        command += [key, "-out", certificate, "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = self.serve(context)
        actions = json.dumps({"name": "webhook", "url": f"https://127.0.0.1:{server.server_port}/hook"})
        sick = self.written("sick")
        result = self.rule(sick, "ExplodingTensor", "--actions", actions, code=10)
        self.assertIn("action webhook failed: https://127.0.0.1", result.stderr)
        self.assertEqual(server.bodies, [])
        trusting = {"variables": {"CURL_CA_BUNDLE": certificate}}
        result = self.rule(sick, "ExplodingTensor", "--actions", actions, code=10, **trusting)
        self.assertEqual(result.stderr, "")
        (body,) = server.bodies
        self.assertEqual(strict_json(body)["rule"], "ExplodingTensor")

    def test_an_action_that_fails_does_not_stop_the_rule(self):
        actions = json.dumps([{"name": "exec", "command": ["/no/such/program"], "repeat": True}])
        result = self.rule(self.written("sick"), "ExplodingTensor", "--actions", actions, code=10)
        self.assertEqual(result.stderr.count("/no/such/program cannot be started"), 2)
        self.assertIn("condition met at 2 steps", result.stdout)


class LiveRun(RuleTest):
    def start_run(self):
        self.run_path = self.path("run-1")
        run = subprocess.Popen(
            [WRITER, "live", self.run_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self.addCleanup(self.finish, run)
        return run

    def begun_run(self, order="step"):
        """A run whose first step is there: steps are written by another thread."""
        run = self.start_run()
        self.order(run, order)
        self.wait_until(lambda: os.path.isdir(os.path.join(self.run_path, "index")))
        return run

    def finish(self, process):
        process.kill()
        process.communicate()

    def order(self, run, what):
        run.stdin.write(what + "\n")
        run.stdin.flush()
        return run.stdout.readline().strip() if what != "end" else None

    def start_rule(self, *arguments):
        process = subprocess.Popen(
            [PROGRAM, "rule", self.run_path, *arguments, "--poll", "0.02", "--timeout", "60"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        alarm = threading.Timer(120, process.kill)
        alarm.start()
        self.addCleanup(alarm.cancel)
        self.addCleanup(self.finish, process)
        return process

    def wait_until(self, condition):
        last = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), last)
            time.sleep(0.02)

    def status(self):
        path = self.path("out", "status.json")
        return self.read_json("out", "status.json")["RuleEvaluationStatus"] if os.path.exists(path) else None

    def test_a_run_that_has_not_begun_is_waited_for_and_followed_to_its_end(self):
        self.run_path = self.path("run-1")
        rule = self.start_rule("ExplodingTensor", "--follow", "--report", self.path("out"))
        run = self.start_run()
        for order in ("step", "step", "nan"):
            self.assertEqual(self.order(run, order), "done")
        self.assertTrue(rule.stdout.readline().startswith("ExplodingTensor at step 2 (TRAIN 2): loss: 1 NaN"))
        self.assertIsNone(rule.poll())
        self.order(run, "end")
        output, errors = rule.communicate(timeout=100)
        self.assertEqual((errors, rule.returncode), ("", 10))
        self.assertIn("condition met at 1 step, 3 steps looked at", output)
        self.assertTrue(output.endswith("ended: the run ended\n"), output)
        self.assertEqual(self.status(), "IssuesFound")

    def test_a_running_run_is_followed_unless_told_otherwise(self):
        run = self.begun_run()
        self.assertIn("ended: all known steps", self.rule(self.run_path, "ExplodingTensor", "--no-follow").stdout)
        rule = self.start_rule("ExplodingTensor", "--report", self.path("out"))
        self.wait_until(lambda: self.status() == "InProgress")
        self.order(run, "step")
        self.order(run, "end")
        output, _ = rule.communicate(timeout=100)
        self.assertIn("ended: the run ended\n", output)
        self.assertIn("2 steps looked at", output)

    def test_a_request_to_stop_is_honoured_by_the_run(self):
        run = self.begun_run()
        rule = self.start_rule(
            "ExplodingTensor", "--actions", '{"name": "stoptraining", "training_job_prefix": "run"}'
        )
        self.assertEqual(self.order(run, "nan"), "done")
        self.wait_until(lambda: os.path.exists(os.path.join(self.run_path, "stop_request.json")))
        with open(os.path.join(self.run_path, "stop_request.json"), encoding="utf-8") as file:
            request = strict_json(file.read())
        self.assertEqual((request["rule"], request["step"], request["prefix"]), ("ExplodingTensor", 1, "run"))
        # Seen when a step is written after it, which happens on another thread.
        self.wait_until(lambda: self.order(run, "step") == "stop requested")
        self.order(run, "end")
        output, errors = rule.communicate(timeout=100)
        self.assertEqual((errors, rule.returncode), ("", 10))

    def test_a_rule_about_time_stops_a_run_that_stalls(self):
        run = self.begun_run()
        rule = self.start_rule("StalledTrainingRule", "--threshold", "1", "--stop_training_on_fire", "True")
        request_path = os.path.join(self.run_path, "stop_request.json")
        self.wait_until(lambda: os.path.exists(request_path))
        with open(request_path, encoding="utf-8") as file:
            request = strict_json(file.read())
        self.assertEqual((request["rule"], request["step"], request["prefix"]), ("StalledTrainingRule", 0, ""))
        self.order(run, "end")
        output, errors = rule.communicate(timeout=100)
        self.assertEqual((errors, rule.returncode), ("", 10))
        self.assertIn("nothing new for 1 s", output)

    def test_an_interrupt_ends_it_in_order(self):
        run = self.begun_run()
        rule = self.start_rule("ExplodingTensor", "--report", self.path("out"))
        self.wait_until(lambda: self.status() == "InProgress")
        rule.send_signal(signal.SIGINT)
        output, errors = rule.communicate(timeout=100)
        self.assertEqual((errors, rule.returncode), ("", 1))
        self.assertIn("ended: stopped\n", output)
        self.assertEqual(self.status(), "Stopped")

    def test_a_run_that_dies_ends_it(self):
        run = self.begun_run("nan")
        rule = self.start_rule("ExplodingTensor", "--json")
        time.sleep(0.2)
        run.kill()
        run.wait()
        output, _ = rule.communicate(timeout=100)
        self.assertEqual(rule.returncode, 10)
        self.assertRegex(strict_json(output)["ended_because"], "presumed dead|all known steps")

    def test_a_run_that_never_begins(self):
        result = self.rule(
            self.path("gone"), "ExplodingTensor", "--follow", "--poll", "0.01", "--timeout", "0.1", code=1
        )
        self.assertEqual(result.stdout, "")
        self.assertIn("no such directory; waited 0.1 s", result.stderr)


if __name__ == "__main__":
    main()
