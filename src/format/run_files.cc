#include "format/run_files.h"

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "format/json_fields.h"

namespace tornasole::format {
namespace {

constexpr std::int64_t kHealthVersion = 1;
constexpr std::int64_t kMaxWorkers = 65536;
constexpr std::size_t kMaxErrors = 20;
constexpr JsonFields::Bounds kCount{.lowest = 0};

constexpr std::array<std::string_view, 3> kStateNames = {"running", "ended", "failed"};

Result<RunState> parse_state(std::string_view name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (kStateNames[i] == name) return static_cast<RunState>(i);
  }
  return corrupt_error("\"state\" of the health file is \"{}\", not running, ended or failed",
                       printable(name.substr(0, 40)));
}

void write_identity(JsonWriter& json, const ProcessIdentity& process) {
  json.key("host").value(process.host).key("pid").value(process.pid).key("start").value(process.start);
}

Status read_identity(const JsonFields& fields, ProcessIdentity* process) {
  TORNASOLE_CHECK(fields.require({"host", "pid", "start"}));
  TORNASOLE_CHECK(fields.read("host", &process->host));
  TORNASOLE_CHECK(fields.read("pid", &process->pid, {.lowest = 1}));
  return fields.read("start", &process->start, kCount);
}

void write_counts(JsonWriter& json, const std::map<std::string, std::int64_t>& counts) {
  json.begin_object();
  for (const auto& [cause, count] : counts) json.key(cause).value(count);
  json.end_object();
}

}  // namespace

Bytes encode_health(const Health& health) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("version").value(kHealthVersion);
  write_identity(json, health.process);
  json.key("state").value(kStateNames[static_cast<std::size_t>(health.state)]);
  if (!health.reason.empty()) json.key("reason").value(health.reason);
  json.key("run_id").value(health.run_id).key("start_time").value(health.start_time);
  json.key("heartbeat").value(health.heartbeat).key("heartbeat_interval_s").value(health.heartbeat_interval_s);
  json.key("due").value(health.due).key("committed").value(health.committed).key("dropped");
  write_counts(json, health.dropped);
  json.key("dropped_values");
  write_counts(json, health.dropped_values);
  json.key("last_committed").value(health.last_committed);
  json.key("queue_peak_bytes").value(health.queue_peak_bytes).key("wait_ms").value(health.wait_ms);
  json.key("when_full").value(health.when_full).key("fsync").value(health.fsync).key("errors").begin_array();
  for (std::size_t i = 0; i < std::min(health.errors.size(), kMaxErrors); ++i) json.value(health.errors[i]);
  json.end_array();
  if (!health.requests.empty()) {
    json.key("requests");
    write_counts(json, health.requests);
  }
  if (!health.mode_steps.empty()) {
    json.key("mode_steps");
    write_counts(json, health.mode_steps);
  }
  json.end_object();
  return out;
}

Result<Health> decode_health(ByteView text) {
  TORNASOLE_TRY(const Json json, parse_small_file(text, "the health file"));
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "the health file"));
  Health health;
  // A later version adds keys; it does not change these.
  std::int64_t version = 0;
  TORNASOLE_CHECK(fields.require({"version", "state", "heartbeat"}));
  TORNASOLE_CHECK(fields.read("version", &version, {.lowest = kHealthVersion}));
  TORNASOLE_CHECK(read_identity(fields, &health.process));
  std::string state;
  TORNASOLE_CHECK(fields.read("state", &state));
  TORNASOLE_TRY(health.state, parse_state(state));
  TORNASOLE_CHECK(fields.read("reason", &health.reason));
  TORNASOLE_CHECK(fields.read("run_id", &health.run_id));
  TORNASOLE_CHECK(fields.read("start_time", &health.start_time));
  TORNASOLE_CHECK(fields.read("heartbeat", &health.heartbeat));
  TORNASOLE_CHECK(fields.read("heartbeat_interval_s", &health.heartbeat_interval_s));
  // A reader waits six intervals for a sign of life; a file must not make it wait for ever.
  if (!(health.heartbeat_interval_s > 0 && health.heartbeat_interval_s <= 3600)) {
    return corrupt_error("\"heartbeat_interval_s\" of the health file is {}, not above 0 and at most 3600",
                         health.heartbeat_interval_s);
  }
  TORNASOLE_CHECK(fields.read("due", &health.due, kCount));
  TORNASOLE_CHECK(fields.read("committed", &health.committed, kCount));
  TORNASOLE_CHECK(fields.read("dropped", &health.dropped));
  TORNASOLE_CHECK(fields.read("dropped_values", &health.dropped_values));
  TORNASOLE_CHECK(fields.read("last_committed", &health.last_committed, {.lowest = -1}));
  TORNASOLE_CHECK(fields.read("queue_peak_bytes", &health.queue_peak_bytes, kCount));
  TORNASOLE_CHECK(fields.read("wait_ms", &health.wait_ms, kCount));
  TORNASOLE_CHECK(fields.read("when_full", &health.when_full));
  TORNASOLE_CHECK(fields.read("fsync", &health.fsync));
  TORNASOLE_CHECK(fields.read("errors", &health.errors));
  TORNASOLE_CHECK(fields.read("requests", &health.requests));
  TORNASOLE_CHECK(fields.read("mode_steps", &health.mode_steps));
  if (health.errors.size() > kMaxErrors) {
    return corrupt_error("the health file has {} errors, at most {} are allowed", health.errors.size(), kMaxErrors);
  }
  return health;
}

Bytes encode_run(const RunFile& run) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("run_id").value(run.run_id).key("start").value(run.start);
  json.key("world_size").value(run.world_size).end_object();
  return out;
}

Result<RunFile> decode_run(ByteView text) {
  TORNASOLE_TRY(const Json json, parse_small_file(text, "the run file"));
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "the run file"));
  RunFile run;
  TORNASOLE_CHECK(fields.require({"run_id", "start", "world_size"}));
  TORNASOLE_CHECK(fields.read("run_id", &run.run_id));
  TORNASOLE_CHECK(fields.read("start", &run.start));
  TORNASOLE_CHECK(fields.read("world_size", &run.world_size, {.lowest = 1, .highest = kMaxWorkers}));
  return run;
}

Bytes encode_claim(const ProcessIdentity& owner) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object();
  write_identity(json, owner);
  json.end_object();
  return out;
}

Result<ProcessIdentity> decode_claim(ByteView text) {
  // Whatever else stands in a claim, it does not say who made it.
  const auto read = [&]() -> Result<ProcessIdentity> {
    TORNASOLE_TRY(const Json json, parse_small_file(text, "the claim"));
    TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "the claim"));
    ProcessIdentity owner;
    TORNASOLE_CHECK(read_identity(fields, &owner));
    return owner;
  };
  auto owner = read();
  if (owner.ok()) return owner;
  return not_found_error("the claim names no process: {}", owner.error().message);
}

Bytes encode_stop_request(const StopRequest& request) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("rule").value(request.rule);
  if (request.step) json.key("step").value(*request.step);
  json.key("message").value(request.reason).key("time").value(request.time);
  json.key("prefix").value(request.prefix).end_object();
  return out;
}

Result<StopRequest> decode_stop_request(ByteView text) {
  TORNASOLE_TRY(const Json json, parse_small_file(text, "the stop request"));
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "the stop request"));
  StopRequest request;
  TORNASOLE_CHECK(fields.read("rule", &request.rule));
  TORNASOLE_CHECK(fields.read("step", &request.step));
  TORNASOLE_CHECK(fields.read("message", &request.reason));
  TORNASOLE_CHECK(fields.read("time", &request.time));
  TORNASOLE_CHECK(fields.read("prefix", &request.prefix));
  return request;
}

}  // namespace tornasole::format
