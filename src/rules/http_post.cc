// 1. parse    the address, strictly: what is in it goes into the request as it is
// 2. connect  to the addresses of the host, one after the other, without blocking
// 3. send     the request, with the length of its body and "Connection: close"
// 4. receive  up to the end of the first line of the answer, which has the code
//
// One deadline holds for 2 to 4. Looking up a name is the system's and has its own limits. For https, which needs the
// certificates and the cryptography of the system, curl does 2 to 4.

#include "rules/http_post.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/errors.h"
#include "base/utf8.h"
#include "rules/run_program.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kMaxStatusLine = 8192;

class Deadline {
 public:
  explicit Deadline(double timeout_s)
      : timeout_s_(timeout_s), last_ns_(system_clock().monotonic_ns() + static_cast<std::int64_t>(timeout_s * 1e9)) {}

  // Waits until the socket is ready; kIo if it is not in time.
  Status wait(int socket, short events) const {
    while (true) {
      const std::int64_t left_ms = (last_ns_ - system_clock().monotonic_ns()) / 1'000'000;
      if (left_ms <= 0) return io_error("no answer within {} s", timeout_s_);
      pollfd entry{.fd = socket, .events = events, .revents = 0};
      const int ready = poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 1'000'000)));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return errno_error(errno, "waiting");
    }
  }

 private:
  double timeout_s_;
  std::int64_t last_ns_;
};

class Socket {
 public:
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

Result<Socket> connect_to(const addrinfo& address, const Deadline& deadline) {
  Socket connection(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (connection.get() < 0) return errno_error(errno, "socket");
  if (connect(connection.get(), address.ai_addr, address.ai_addrlen) == 0) return connection;
  if (errno != EINPROGRESS) return errno_error(errno, "connecting");
  TORNASOLE_CHECK(deadline.wait(connection.get(), POLLOUT));
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return errno_error(error, "connecting");
  return connection;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

Result<Socket> connect_to_any(const HttpUrl& url, const Deadline& deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  if (failed != 0) return io_error("no address of that name: {}", gai_strerror(failed));
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  Error last = io_error("no address of that name");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    auto connection = connect_to(*address, deadline);
    if (connection) return connection;
    last = connection.error();
  }
  return last;
}

Status send_all(const Socket& connection, std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TORNASOLE_CHECK(deadline.wait(connection.get(), POLLOUT));
    } else if (errno != EINTR) {
      return errno_error(errno, "sending");
    }
  }
  return {};
}

Result<std::string> receive_line(const Socket& connection, const Deadline& deadline) {
  std::string line;
  char buffer[512];
  while (line.find('\n') == std::string::npos) {
    if (line.size() > kMaxStatusLine) return io_error("the answer is not HTTP");
    const ssize_t received = recv(connection.get(), buffer, sizeof(buffer), 0);
    if (received > 0) {
      line.append(buffer, static_cast<std::size_t>(received));
    } else if (received == 0) {
      return io_error("the server closed the connection without an answer");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TORNASOLE_CHECK(deadline.wait(connection.get(), POLLIN));
    } else if (errno != EINTR) {
      return errno_error(errno, "receiving");
    }
  }
  line.resize(line.find_first_of("\r\n"));
  return line;
}

// "HTTP/1.1 204 No Content" -> 204.
Result<int> code_of(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  const std::size_t blank = line.find(' ');
  int code = 0;
  if (line.starts_with(kVersion) && blank != std::string_view::npos && line.size() >= blank + 4) {
    const char* begin = line.data() + blank + 1;
    if (std::from_chars(begin, begin + 3, code).ptr == begin + 3) return code;
  }
  return io_error("the answer is not HTTP: {}", printable(line.substr(0, 100)));
}

// Letters, digits and what else addresses are made of; anything else could begin another line of the request.
bool is_url_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '<' && c != '>'; });
}

// Nothing of the user's curl configuration counts, no other protocol, and a redirect is an error (47).
Status post_by_curl(const HttpUrl& url, std::string_view json, double timeout_s) {
  const std::string address = fmt::format("https://{}{}", url.authority, url.target);
  const Status done = run_program({"curl",          "--disable", "--silent",   "--fail",
                                   "--globoff",     "--proto",   "=https",     "--location",
                                   "--max-redirs",  "0",         "--max-time", fmt::format("{}", timeout_s),
                                   "--user-agent",  "tornasole", "--header",   "Content-Type: application/json",
                                   "--data-binary", "@-",        "--url",      address},
                                  json, timeout_s + 1);
  return done ? done : io_error("{}: {}", address, done.error().message);
}

}  // namespace

Result<HttpUrl> parse_http_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::string_view kSecureScheme = "https://";
  const auto refuse = [&] {
    return invalid_error("\"{}\" is no address; it must be http[s]://host[:port][/path]", printable(url));
  };
  const bool is_secure = url.starts_with(kSecureScheme);
  if ((!is_secure && !url.starts_with(kScheme)) || !is_url_text(url)) return refuse();
  std::string_view rest = url.substr(is_secure ? kSecureScheme.size() : kScheme.size());
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  HttpUrl parsed{
      .is_secure = is_secure, .authority = std::string(rest.substr(0, end)), .port = is_secure ? "443" : "80"};
  if (end < rest.size()) parsed.target = (rest[end] == '?' ? "/" : "") + std::string(rest.substr(end));
  std::string_view host = parsed.authority;
  if (host.find('@') != std::string_view::npos) return refuse();
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : std::string_view::npos;
  if (host.starts_with('[') && bracket == std::string_view::npos) return refuse();
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    parsed.port = host.substr(colon + 1);
    int port = 0;
    const char* last = parsed.port.data() + parsed.port.size();
    const auto [stop, error] = std::from_chars(parsed.port.data(), last, port);
    if (stop != last || error != std::errc() || port < 1 || port > 65535) return refuse();
    host = host.substr(0, colon);
  }
  parsed.host = bracket == std::string_view::npos ? host : host.substr(1, bracket - 1);
  if (parsed.host.empty()) return refuse();
  return parsed;
}

Status post_json(const HttpUrl& url, std::string_view json, double timeout_s) {
  if (url.is_secure) return post_by_curl(url, json, timeout_s);
  const Deadline deadline(timeout_s);
  const auto exchange = [&]() -> Status {
    TORNASOLE_TRY(const Socket connection, connect_to_any(url, deadline));
    const std::string request = fmt::format(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tornasole\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        url.target, url.authority, json.size(), json);
    TORNASOLE_CHECK(send_all(connection, request, deadline));
    TORNASOLE_TRY(const std::string line, receive_line(connection, deadline));
    TORNASOLE_TRY(const int code, code_of(line));
    if (code >= 300 && code < 400) return io_error("the server answers {}: redirects are not followed", code);
    if (code < 200 || code > 299) return io_error("the server answers {}", code);
    return {};
  };
  const Status done = exchange();
  return done ? done : io_error("http://{}{}: {}", url.authority, url.target, done.error().message);
}

}  // namespace tornasole::rules
