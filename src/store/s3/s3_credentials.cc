#include "store/s3/s3_credentials.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "store/s3/s3_address.h"
#include "store/s3/s3_xml.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20U;
constexpr double kRefreshBefore_s = 300;

std::string_view trim(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

bool is_true(const std::optional<std::string>& text) {
  if (!text) return false;
  std::string lower = *text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower == "true" || lower == "1" || lower == "yes";
}

// The path a variable names, or the usual one below the home directory.
std::optional<std::string> shared_file(const S3Environment& environment, std::string_view variable,
                                       std::string_view usual) {
  if (auto path = environment.get(variable)) return path;
  if (const auto home = environment.get("HOME")) return fmt::format("{}/.aws/{}", *home, usual);
  return std::nullopt;
}

IniSections read_ini(const S3Environment& environment, const std::optional<std::string>& path) {
  if (!path || !environment.read_file) return {};
  const auto text = environment.read_file(*path, kMaxFileBytes);
  return text.ok() ? parse_ini(*text) : IniSections();
}

std::string profile_name(const S3Environment& environment) {
  if (auto name = environment.get("AWS_PROFILE")) return *name;
  return environment.get("AWS_DEFAULT_PROFILE").value_or("default");
}

// A token or a key goes into a header: it must not be able to end it.
bool is_header_safe(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<Credentials> check_credentials(Credentials found, std::string_view who) {
  if (found.access_key_id.empty() || found.secret_key.empty()) return io_error("{}: incomplete credentials", who);
  if (!is_header_safe(found.access_key_id) || !is_header_safe(found.session_token.reveal())) {
    return io_error("{}: the credentials hold characters that no key has", who);
  }
  return found;
}

std::string text_of(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  const std::string* text = member == nullptr ? nullptr : member->as_string();
  return text == nullptr ? std::string() : *text;
}

// Where a container's agent may be: nothing else gets to see the authorization token in plain text.
bool is_agent_host(std::string_view host) {
  const std::string_view name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return is_loopback(host) || name == "169.254.170.2" || name == "169.254.170.23" || name == "[fd00:ec2::23]";
}

}  // namespace

IniSections parse_ini(std::string_view text) {
  IniSections sections;
  std::map<std::string, std::string>* section = nullptr;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = &sections[std::string(trim(line.substr(1, line.size() - 2)))];
      continue;
    }
    // An indented line is a setting of a setting, none of which we know.
    const bool is_nested = raw.front() == ' ' || raw.front() == '\t';
    const std::size_t equals = line.find('=');
    if (section == nullptr || is_nested || equals == std::string_view::npos) continue;
    (*section)[std::string(trim(line.substr(0, equals)))] = std::string(trim(line.substr(equals + 1)));
  }
  return sections;
}

std::map<std::string, std::string> read_profile(const S3Environment& environment) {
  const std::string name = profile_name(environment);
  std::map<std::string, std::string> profile;
  const IniSections credentials =
      read_ini(environment, shared_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  const IniSections settings = read_ini(environment, shared_file(environment, "AWS_CONFIG_FILE", "config"));
  if (const auto found = credentials.find(name); found != credentials.end()) profile = found->second;
  for (const std::string& section : {"profile " + name, name}) {
    // Without "profile " only the default one counts.
    if (section == name && name != "default") continue;
    if (const auto found = settings.find(section); found != settings.end()) {
      profile.insert(found->second.begin(), found->second.end());
    }
  }
  return profile;
}

std::optional<std::string> find_region(const S3Environment& environment) {
  for (const std::string_view name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (const auto region = environment.get(name); region && !trim(*region).empty()) return std::string(trim(*region));
  }
  const auto profile = read_profile(environment);
  const auto found = profile.find("region");
  return found == profile.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> find_endpoint_url(const S3Environment& environment) {
  if (is_true(environment.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))) return std::nullopt;
  for (const std::string_view name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (auto url = environment.get(name)) return url;
  }
  const auto profile = read_profile(environment);
  const auto found = profile.find("endpoint_url");
  return found == profile.end() ? std::nullopt : std::optional(found->second);
}

Result<Credentials> CredentialChain::get() {
  const std::lock_guard lock(mutex_);
  const bool is_fresh =
      found_ && (found_->expires_s == 0 || clock_.wall_seconds() < found_->expires_s - kRefreshBefore_s);
  if (is_fresh) return *found_;
  auto found = find();
  if (found.ok()) {
    found_ = *found;
  } else if (found_ && clock_.wall_seconds() < found_->expires_s) {
    return *found_;  // they cannot be renewed right now, and are good for some minutes more
  }
  return found;
}

void CredentialChain::forget() {
  const std::lock_guard lock(mutex_);
  found_.reset();
}

std::optional<Credentials> CredentialChain::from_environment() const {
  const auto id = environment_.get("AWS_ACCESS_KEY_ID");
  const auto key = environment_.get("AWS_SECRET_ACCESS_KEY");
  if (!id || !key) return std::nullopt;
  return Credentials{std::string(trim(*id)), Secret(std::string(trim(*key))),
                     Secret(std::string(trim(environment_.get("AWS_SESSION_TOKEN").value_or(""))))};
}

Result<Credentials> CredentialChain::find() {
  if (auto found = from_environment()) return check_credentials(std::move(*found), "environment");
  std::string tried = "environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set)";
  const auto note = [&tried](const Error& error) { tried += "; " + error.message; };

  const auto token_file = environment_.get("AWS_WEB_IDENTITY_TOKEN_FILE");
  const auto role = environment_.get("AWS_ROLE_ARN");
  if (token_file && role) {
    auto found = from_web_identity(*token_file, *role, environment_.get("AWS_ROLE_SESSION_NAME").value_or("tornasole"));
    if (found.ok()) return found;
    note(found.error());
  }
  for (const auto source :
       {&CredentialChain::from_profile, &CredentialChain::from_container, &CredentialChain::from_instance}) {
    auto found = (this->*source)();
    if (found.ok()) return found;
    note(found.error());
  }
  return io_error("no AWS credentials; tried: {}", tried);
}

Result<Credentials> CredentialChain::from_web_identity(const std::string& token_file, const std::string& role,
                                                       const std::string& session_name) {
  auto token = environment_.read_file(token_file, kMaxFileBytes);
  if (!token.ok()) return io_error("web identity ({})", token.error().message);
  const std::string region = find_region(environment_).value_or("us-east-1");
  auto url = environment_.get("AWS_ENDPOINT_URL_STS");
  if (!url) url = environment_.get("AWS_ENDPOINT_URL");
  if (!url) url = fmt::format("https://sts.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  const auto parsed = parse_url(*url);
  if (!parsed.ok() || (parsed->scheme == "http" && !is_loopback(parsed->host))) {
    return io_error("web identity (the token service must be reached by https)");
  }
  const Secret body("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + escape_query(role) +
                    "&RoleSessionName=" + escape_query(session_name) +
                    "&WebIdentityToken=" + escape_query(trim(*token)));
  const HttpOutcome outcome = http_.send(
      {.method = "POST",
       .url = fmt::format("{}://{}{}", parsed->scheme, parsed->host, parsed->path.empty() ? "/" : parsed->path),
       .headers = {{"content-type", "application/x-www-form-urlencoded"}},
       .body = body.reveal(),
       .max_answer_bytes = kMaxFileBytes,
       .total_timeout_s = 30});
  if (!outcome.is_answered) return io_error("web identity ({}: {})", parsed->host, outcome.failure.message);
  if (outcome.answer.status != 200)
    return io_error("web identity ({} answered {})", parsed->host, outcome.answer.status);
  const auto xml = parse_xml(outcome.answer.body);
  const XmlElement* result = xml.ok() ? xml->find("AssumeRoleWithWebIdentityResult") : nullptr;
  const XmlElement* given = result != nullptr ? result->find("Credentials") : nullptr;
  if (given == nullptr) return io_error("web identity ({} gave no credentials)", parsed->host);
  Credentials found{std::string(given->text_of("AccessKeyId")), Secret(std::string(given->text_of("SecretAccessKey"))),
                    Secret(std::string(given->text_of("SessionToken")))};
  found.expires_s = parse_iso_time(given->text_of("Expiration")).value_or(clock_.wall_seconds() + 900);
  return check_credentials(std::move(found), "web identity");
}

Result<Credentials> CredentialChain::from_profile() {
  const std::string name = profile_name(environment_);
  auto profile = read_profile(environment_);
  if (profile.contains("aws_access_key_id") && profile.contains("aws_secret_access_key")) {
    return check_credentials(
        {profile["aws_access_key_id"], Secret(profile["aws_secret_access_key"]), Secret(profile["aws_session_token"])},
        fmt::format("profile '{}'", name));
  }
  if (profile.contains("web_identity_token_file") && profile.contains("role_arn")) {
    return from_web_identity(profile["web_identity_token_file"], profile["role_arn"], "tornasole");
  }
  for (const char* unknown : {"role_arn", "credential_process", "sso_session", "sso_start_url"}) {
    if (profile.contains(unknown)) {
      return io_error("profile '{}' (uses {}, which is not supported: export the credentials to the environment)", name,
                      unknown);
    }
  }
  return io_error("profile '{}' (not in the shared files, or without keys)", name);
}

Result<Credentials> CredentialChain::fetch_json(HttpRequest request, std::string_view who) {
  request.max_answer_bytes = kMaxFileBytes;
  request.may_use_proxy = false;
  const HttpOutcome outcome = http_.send(request);
  if (!outcome.is_answered) return io_error("{} ({})", who, outcome.failure.message);
  if (outcome.answer.status != 200) return io_error("{} (answered {})", who, outcome.answer.status);
  const auto json = parse_json(outcome.answer.body, {.max_bytes = kMaxFileBytes, .max_depth = 8});
  // What the parser says may repeat what it read.
  if (!json.ok()) return io_error("{} (the answer is not JSON)", who);
  Credentials found{text_of(*json, "AccessKeyId"), Secret(text_of(*json, "SecretAccessKey")),
                    Secret(text_of(*json, "Token"))};
  if (const auto expires = parse_iso_time(text_of(*json, "Expiration"))) found.expires_s = *expires;
  return check_credentials(std::move(found), who);
}

Result<Credentials> CredentialChain::from_container() {
  std::string address;
  if (const auto relative = environment_.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    address = "http://169.254.170.2" + *relative;
  } else if (const auto full = environment_.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    address = *full;
  } else {
    return io_error("container (no AWS_CONTAINER_CREDENTIALS_RELATIVE_URI)");
  }
  // A query is usual here, and carries no secret.
  const std::size_t query = address.find('?');
  const auto url = parse_url(std::string_view(address).substr(0, query));
  if (!url.ok() || (url->scheme == "http" && !is_agent_host(url->host))) {
    return io_error("container (its address must be https, this host, or the container agent's)");
  }
  HttpRequest request{.url = address, .connect_timeout_s = 2, .total_timeout_s = 10};
  std::string token = environment_.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto file = environment_.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    auto text = environment_.read_file(*file, kMaxFileBytes);
    if (!text.ok()) return io_error("container ({})", text.error().message);
    token = std::string(trim(*text));
  }
  if (!std::ranges::all_of(token, [](char c) { return c >= ' ' && c < '\x7f'; })) {
    return io_error("container (the authorization token holds characters that none has)");
  }
  if (!token.empty()) request.headers.emplace_back("authorization", std::move(token));
  return fetch_json(std::move(request), "container");
}

Result<Credentials> CredentialChain::from_instance() {
  constexpr std::string_view kWho = "instance metadata";
  if (is_true(environment_.get("AWS_EC2_METADATA_DISABLED"))) return io_error("{} (switched off)", kWho);
  const std::string base = environment_.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  const auto url = parse_url(base);
  if (!url.ok()) return io_error("{} (its address is no URL)", kWho);
  std::string root = fmt::format("{}://{}{}", url->scheme, url->host, url->path);
  while (root.back() == '/') root.pop_back();
  const HttpOutcome token = http_.send({.method = "PUT",
                                        .url = root + "/latest/api/token",
                                        .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                                        .max_answer_bytes = 4096,
                                        .connect_timeout_s = 1,
                                        .total_timeout_s = 2,
                                        .may_use_proxy = false});
  if (!token.is_answered) return io_error("{} ({})", kWho, token.failure.message);
  if (token.answer.status != 200 || !is_header_safe(token.answer.body)) {
    return io_error("{} (answered {})", kWho, token.answer.status);
  }
  const std::vector<std::pair<std::string, std::string>> headers = {{"x-aws-ec2-metadata-token", token.answer.body}};
  const std::string roles = root + "/latest/meta-data/iam/security-credentials/";
  const HttpOutcome role = http_.send({.url = roles,
                                       .headers = headers,
                                       .max_answer_bytes = 4096,
                                       .connect_timeout_s = 1,
                                       .total_timeout_s = 5,
                                       .may_use_proxy = false});
  if (!role.is_answered || role.answer.status != 200) return io_error("{} (the instance has no role)", kWho);
  const std::string_view body = role.answer.body;
  const std::string_view name = trim(body.substr(0, body.find('\n')));
  return fetch_json(
      {.url = roles + escape_path(name), .headers = headers, .connect_timeout_s = 1, .total_timeout_s = 5}, kWho);
}

}  // namespace tornasole::store::s3
