// The client on libcurl.
//
//   1. libcurl.so.4 is loaded when the first client is made, with its symbols kept to itself.
//   2. Each exchange takes an idle handle, or makes one; a handle keeps its connections for the next exchange.
//   3. In a forked child the handles are left alone and new ones are made: two processes must not share a connection.

#include <curl/curl.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <mutex>
#include <new>

#include "base/errors.h"
#include "store/s3/http_exchange.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::size_t kMaxIdleHandles = 48;
constexpr std::size_t kMaxHeaderBytes = 64 << 10U;

// The functions we call, by the types the header gives them.
struct CurlFunctions {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

template <typename Function>
bool find_function(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Result<CurlFunctions> load_curl() {
  constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
  void* library = nullptr;
  std::string why;
  for (const char* name : kNames) {
    // Never unloaded: handles and threads may live as long as the process.
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
    if (why.empty()) why = dlerror();  // NOLINT(concurrency-mt-unsafe): thread-local in glibc
  }
  if (library == nullptr) {
    return unsupported_error(
        "s3:// needs the library libcurl.so.4 (package libcurl4, or libcurl), which is not there: {}", why);
  }
  CurlFunctions curl;
  const bool is_complete = find_function(library, "curl_global_init", &curl.global_init) &&
                           find_function(library, "curl_easy_init", &curl.easy_init) &&
                           find_function(library, "curl_easy_setopt", &curl.easy_setopt) &&
                           find_function(library, "curl_easy_perform", &curl.easy_perform) &&
                           find_function(library, "curl_easy_getinfo", &curl.easy_getinfo) &&
                           find_function(library, "curl_easy_reset", &curl.easy_reset) &&
                           find_function(library, "curl_easy_cleanup", &curl.easy_cleanup) &&
                           find_function(library, "curl_easy_strerror", &curl.easy_strerror) &&
                           find_function(library, "curl_slist_append", &curl.slist_append) &&
                           find_function(library, "curl_slist_free_all", &curl.slist_free_all);
  if (!is_complete)
    return unsupported_error("s3:// needs libcurl 7.32 or newer; the one that is there lacks functions");
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return unsupported_error("s3://: libcurl cannot be started");
  return curl;
}

// Loaded once for the process; a failure is tried again, since the library may be installed meanwhile.
Result<const CurlFunctions*> curl_functions() {
  static std::mutex mutex;
  static CurlFunctions loaded;  // guarded by mutex until it is whole
  const std::lock_guard lock(mutex);
  if (loaded.easy_init == nullptr) {
    TORNASOLE_TRY(loaded, load_curl());
  }
  return static_cast<const CurlFunctions*>(&loaded);
}

struct Receiver {
  HttpAnswer* answer = nullptr;
  std::uint64_t max_bytes = 0;
  std::size_t header_bytes = 0;
  bool is_too_long = false;
  bool is_out_of_memory = false;
  const std::atomic<bool>* is_cancelled = nullptr;
};

std::size_t receive_body(char* data, std::size_t size, std::size_t count, void* to) noexcept {
  auto* receiver = static_cast<Receiver*>(to);
  const std::size_t bytes = size * count;
  if (receiver->answer->body.size() + bytes > receiver->max_bytes) {
    receiver->is_too_long = true;
    return 0;
  }
  try {
    receiver->answer->body.append(data, bytes);
  } catch (...) {
    receiver->is_out_of_memory = true;
    return 0;
  }
  return bytes;
}

std::size_t receive_header(char* data, std::size_t size, std::size_t count, void* to) noexcept {
  auto* receiver = static_cast<Receiver*>(to);
  const std::size_t bytes = size * count;
  std::string_view line(data, bytes);
  receiver->header_bytes += bytes;
  if (receiver->header_bytes > kMaxHeaderBytes) {
    receiver->is_too_long = true;
    return 0;
  }
  try {
    // A new status line: what came before was an interim answer.
    if (line.starts_with("HTTP/")) receiver->answer->headers.clear();
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bytes;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    line.remove_prefix(colon + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
    receiver->answer->headers[std::move(name)] = std::string(line);
  } catch (...) {
    receiver->is_out_of_memory = true;
    return 0;
  }
  return bytes;
}

int report_progress(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
  return static_cast<Receiver*>(to)->is_cancelled->load(std::memory_order_relaxed) ? 1 : 0;
}

HttpFailure::Kind failure_kind(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return HttpFailure::Kind::kConnect;
    case CURLE_OPERATION_TIMEDOUT: return HttpFailure::Kind::kTimeout;
    case CURLE_ABORTED_BY_CALLBACK: return HttpFailure::Kind::kCancelled;
    default: return HttpFailure::Kind::kBroken;
  }
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(const CurlFunctions* curl, std::string certificates_file)
      : curl_(*curl), certificates_file_(std::move(certificates_file)), process_(getpid()) {}
  ~CurlClient() override {
    if (process_ != getpid()) return;
    for (CURL* handle : idle_) curl_.easy_cleanup(handle);
  }
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  HttpOutcome send(const HttpRequest& request) override;
  void cancel() noexcept override { is_cancelled_.store(true, std::memory_order_relaxed); }

 private:
  CURL* take_handle();
  void give_back(CURL* handle);
  void prepare(CURL* handle, const HttpRequest& request, curl_slist* headers, Receiver* receiver) const;

  // constant
  const CurlFunctions curl_;
  const std::string certificates_file_;

  std::atomic<bool> is_cancelled_ = false;
  std::mutex mutex_;
  // guarded by mutex_
  pid_t process_;
  std::vector<CURL*> idle_;
};

CURL* CurlClient::take_handle() {
  {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) {
      idle_.clear();
      process_ = getpid();
    }
    if (!idle_.empty()) {
      CURL* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  return curl_.easy_init();
}

void CurlClient::give_back(CURL* handle) {
  curl_.easy_reset(handle);  // keeps the connections, forgets headers and pointers
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdleHandles) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_.easy_cleanup(handle);
}

void CurlClient::prepare(CURL* handle, const HttpRequest& request, curl_slist* headers, Receiver* receiver) const {
  const auto set = [&](CURLoption option, auto value) { curl_.easy_setopt(handle, option, value); };
  const auto milliseconds = [](double seconds) { return static_cast<long>(seconds * 1000); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");  // unknown to old ones; the URL is ours in any case
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));  // where a server offers it; else 1.1
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_timeout_s));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.idle_timeout_s)));
  if (request.total_timeout_s > 0) set(CURLOPT_TIMEOUT_MS, std::max(1L, milliseconds(request.total_timeout_s)));
  if (!request.may_use_proxy) set(CURLOPT_NOPROXY, "*");
  if (!certificates_file_.empty()) set(CURLOPT_CAINFO, certificates_file_.c_str());
  set(CURLOPT_HTTPHEADER, headers);
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    // Not copied. A null pointer would mean "ask the read function".
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  set(CURLOPT_WRITEFUNCTION, &receive_body);
  set(CURLOPT_WRITEDATA, receiver);
  set(CURLOPT_HEADERFUNCTION, &receive_header);
  set(CURLOPT_HEADERDATA, receiver);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &report_progress);
  set(CURLOPT_XFERINFODATA, receiver);
}

HttpOutcome CurlClient::send(const HttpRequest& request) {
  HttpOutcome outcome;
  if (is_cancelled_.load(std::memory_order_relaxed)) {
    outcome.failure = {HttpFailure::Kind::kCancelled, "given up"};
    return outcome;
  }
  CURL* handle = take_handle();
  if (handle == nullptr) {
    outcome.failure = {HttpFailure::Kind::kBroken, "no memory for a connection"};
    return outcome;
  }
  curl_slist* headers = nullptr;
  const auto add_header = [&](const std::string& line) {
    if (curl_slist* longer = curl_.slist_append(headers, line.c_str())) headers = longer;
  };
  for (const auto& [name, value] : request.headers) {
    if (name != "host") add_header(value.empty() ? name + ";" : name + ": " + value);
  }
  add_header("Expect:");  // do not wait for leave to send
  const auto names_type = [](const auto& header) { return header.first == "content-type"; };
  if (std::ranges::none_of(request.headers, names_type)) add_header("Content-Type:");  // an object of ours has none
  Receiver receiver{&outcome.answer, request.max_answer_bytes, 0, false, false, &is_cancelled_};
  prepare(handle, request, headers, &receiver);
  const CURLcode code = curl_.easy_perform(handle);
  long status = 0;
  curl_.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  outcome.answer.status = static_cast<int>(status);
  outcome.is_answered = code == CURLE_OK;
  if (receiver.is_too_long) {
    outcome.failure = {HttpFailure::Kind::kTooLong, "the answer is longer than allowed"};
  } else if (receiver.is_out_of_memory) {
    outcome.failure = {HttpFailure::Kind::kTooLong, "no memory for the answer"};
  } else if (code != CURLE_OK) {
    outcome.failure = {failure_kind(code), curl_.easy_strerror(code)};
  }
  curl_.slist_free_all(headers);
  give_back(handle);
  return outcome;
}

}  // namespace

Result<std::unique_ptr<HttpClient>> open_curl_client(const std::string& certificates_file) {
  TORNASOLE_TRY(const CurlFunctions* curl, curl_functions());
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(curl, certificates_file));
}

}  // namespace tornasole::store::s3
