#include "store/s3/s3_objects.h"

#include <algorithm>
#include <charconv>

#include "base/crc32c.h"
#include "base/errors.h"
#include "store/store.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::size_t kPageKeys = 1000;
constexpr std::size_t kMaxListed = 20'000'000;
constexpr std::uint64_t kAnswerMargin = std::uint64_t{64} << 10U;  // for an error in place of what was asked for
constexpr std::string_view kChecksumHeader = "x-amz-checksum-crc32c";

std::string base64(ByteView bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i) {
      group = (group << 8U) | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) text.push_back(i <= count ? kDigits[(group >> (18 - 6 * i)) & 63U] : '=');
  }
  return text;
}

Bytes big_endian(std::uint32_t crc) {
  Bytes bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(crc >> shift));
  return bytes;
}

bool is_success(const S3Answer& answer) { return answer.http.status >= 200 && answer.http.status < 300; }

template <typename Number>
bool to_number(std::string_view text, Number* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && !text.empty();
}

// The number behind the slash of "bytes 0-9/100".
std::optional<std::uint64_t> range_total(const HttpAnswer& answer) {
  const std::string_view range = answer.header("content-range");
  const std::size_t slash = range.rfind('/');
  std::uint64_t total = 0;
  if (slash == std::string_view::npos || !to_number(range.substr(slash + 1), &total)) return std::nullopt;
  return total;
}

struct ObjectFacts {
  std::uint64_t size_bytes = 0;
  std::string checksum = {};  // as the service keeps it; may be empty
};
Result<ObjectFacts> head_object(S3Client& client, const std::string& key) {
  TORNASOLE_TRY(const S3Answer answer,
                client.call({.method = "HEAD", .key = key, .headers = {{"x-amz-checksum-mode", "ENABLED"}}}));
  if (!is_success(answer)) return client.to_error("look at", key, answer);
  ObjectFacts facts{.checksum = std::string(answer.http.header(kChecksumHeader))};
  if (!to_number(answer.http.header("content-length"), &facts.size_bytes)) {
    return io_error("look at {}: the service does not say how long it is", client.describe(key));
  }
  return facts;
}

// Whether a whole object is what its checksum says. One without a checksum is taken as it is.
bool is_as_stored(const HttpAnswer& answer) {
  const std::string_view checksum = answer.header(kChecksumHeader);
  // One of parts, by its type or its dash, cannot be compared with the whole.
  const bool is_of_parts =
      checksum.find('-') != std::string_view::npos || answer.header("x-amz-checksum-type") == "COMPOSITE";
  if (answer.status != 200 || checksum.empty() || is_of_parts) return true;
  return checksum == checksum_text(crc32c(answer.body));
}

Error taken_error(const S3Client& client, std::string_view key) {
  return invalid_error("write {}: there is something at that name already", client.describe(key));
}

Result<bool> has_same_bytes(S3Client& client, const std::string& key, ByteView body) {
  const auto there = get_object(client, key, 0, body.size() + 1);
  if (there.ok()) return there->bytes == body;
  if (there.error().code == ErrorCode::kNotFound) return false;
  return there.error();
}

// For a service that knows no conditions: look, then write. Two writers of one name are not expected there.
Result<bool> is_there(S3Client& client, const std::string& key) {
  TORNASOLE_TRY(const ListedKeys there, list_keys(client, {.prefix = key, .max_keys = 1}));
  return !there.objects.empty() && there.objects.front().key == key;
}

Status put_once(S3Client& client, const std::string& key, ByteView body, bool if_absent, S3Answer* answer) {
  S3Request request{.method = "PUT",
                    .key = key,
                    .headers = {{std::string(kChecksumHeader), checksum_text(crc32c(body))}},
                    .body = body};
  if (if_absent) request.headers.emplace_back("if-none-match", "*");
  TORNASOLE_TRY(*answer, client.call(request));
  return {};
}

}  // namespace

std::string checksum_text(std::uint32_t crc) { return base64(big_endian(crc)); }

Result<ListedKeys> list_keys(S3Client& client, const ListOptions& options) {
  ListedKeys keys;
  std::optional<std::string> token;
  const std::size_t page = options.max_keys == 0 ? kPageKeys : options.max_keys;
  while (true) {
    S3Request request{.query = {{"list-type", "2"},
                                {"prefix", options.prefix},
                                {"max-keys", std::to_string(page)},
                                {"encoding-type", "url"}}};
    if (!options.delimiter.empty()) request.query.emplace_back("delimiter", options.delimiter);
    if (token) {
      request.query.emplace_back("continuation-token", *token);
    } else if (!options.start_after.empty()) {
      request.query.emplace_back("start-after", options.start_after);
    }
    request.is_sound = [](const HttpAnswer& answer) { return parse_listing(answer.body).ok(); };
    TORNASOLE_TRY(const S3Answer answer, client.call(request));
    if (!is_success(answer)) return client.to_error("list", options.prefix, answer);
    TORNASOLE_TRY(Listing listing, parse_listing(answer.http.body));
    keys.now_s = parse_http_time(answer.http.header("date"));
    std::ranges::move(listing.objects, std::back_inserter(keys.objects));
    std::ranges::move(listing.prefixes, std::back_inserter(keys.prefixes));
    if (!listing.next_token || options.max_keys != 0) return keys;
    if (token == listing.next_token || keys.objects.size() + keys.prefixes.size() > kMaxListed) {
      return corrupt_error("list {}: the listing does not end", client.describe(options.prefix));
    }
    token = std::move(listing.next_token);
  }
}

Result<ObjectBytes> get_object(S3Client& client, const std::string& key, std::uint64_t offset, std::uint64_t length) {
  // Beyond what a range can say, the object's length decides.
  if (length == 0 || length > kMaxReadBytes || offset > (std::uint64_t{1} << 62U)) {
    TORNASOLE_TRY(const ObjectFacts facts, head_object(client, key));
    if (length == 0 || offset >= facts.size_bytes) return ObjectBytes{{}, facts.size_bytes};
    length = std::min(length, facts.size_bytes - offset);
    if (length > kMaxReadBytes) {
      return invalid_error("read {}: {} bytes at once; at most {} are allowed", client.describe(key), length,
                           kMaxReadBytes);
    }
  }
  S3Request request{.key = key,
                    .headers = {{"range", fmt::format("bytes={}-{}", offset, offset + length - 1)}},
                    .max_answer_bytes = length + kAnswerMargin};
  request.is_sound = [&](const HttpAnswer& answer) {
    if (answer.status != 206) return is_as_stored(answer);
    const auto total = range_total(answer);
    return total && offset < *total && answer.body.size() == std::min(length, *total - offset);
  };
  TORNASOLE_TRY(S3Answer answer, client.call(request));
  if (answer.http.status == 416) return ObjectBytes{{}, range_total(answer.http).value_or(0)};
  if (!is_success(answer)) return client.to_error("read", key, answer);
  if (answer.http.status == 206) return ObjectBytes{std::move(answer.http.body), *range_total(answer.http)};
  // The whole, although a part was asked for: allowed, and what an empty object may give.
  const Bytes& whole = answer.http.body;
  return ObjectBytes{offset >= whole.size() ? Bytes() : whole.substr(offset, length), whole.size()};
}

Result<ObjectBytes> get_whole_object(S3Client& client, const std::string& key, std::uint64_t limit) {
  const S3Request request{.key = key,
                          .headers = {{"x-amz-checksum-mode", "ENABLED"}},
                          .max_answer_bytes = limit + kAnswerMargin,
                          .is_sound = is_as_stored};
  auto answer = client.call(request);
  if (answer.ok() && !is_success(*answer)) return client.to_error("read", key, *answer);
  if (answer.ok() && answer->http.body.size() <= limit) {
    const std::uint64_t size = answer->http.body.size();
    return ObjectBytes{std::move(answer->http.body), size};
  }
  // Too long, or no answer: the object's own length says which.
  const auto facts = head_object(client, key);
  if (facts.ok() && facts->size_bytes > limit) {
    return corrupt_error("read {}: {} bytes, at most {} are allowed", client.describe(key), facts->size_bytes, limit);
  }
  if (!answer.ok()) return answer.error();
  return io_error("read {}: the service sent more than the object has", client.describe(key));
}

Result<std::string> put_object(S3Client& client, const std::string& key, ByteView body, IfThere if_there) {
  const bool if_absent = if_there != IfThere::kReplace;
  S3Answer answer;
  TORNASOLE_CHECK(put_once(client, key, body, if_absent, &answer));
  if (is_success(answer)) return parse_etag(answer.http.header("etag"));
  bool is_taken = answer.http.status == 412;
  if (if_absent && answer.http.status == 501) {
    TORNASOLE_TRY(is_taken, is_there(client, key));
    if (!is_taken) {
      TORNASOLE_CHECK(put_once(client, key, body, /*if_absent=*/false, &answer));
      if (is_success(answer)) return parse_etag(answer.http.header("etag"));
    }
  }
  if (!is_taken) return client.to_error("write", key, answer);
  // After a retry what is there may be our own: the answer to the first try was lost.
  if (if_there == IfThere::kAcceptIfSame || answer.tries > 1) {
    TORNASOLE_TRY(const bool is_same, has_same_bytes(client, key, body));
    if (is_same) return std::string();
  }
  return taken_error(client, key);
}

Status delete_object(S3Client& client, const std::string& key) {
  TORNASOLE_TRY(const S3Answer answer, client.call({.method = "DELETE", .key = key}));
  if (is_success(answer)) return {};
  return client.to_error("remove", key, answer);
}

Result<MultipartUpload> MultipartUpload::start(S3Client& client, std::string key) {
  S3Request request{
      .method = "POST", .key = key, .query = {{"uploads", ""}}, .headers = {{"x-amz-checksum-algorithm", "CRC32C"}}};
  request.is_sound = [](const HttpAnswer& answer) {
    const auto xml = parse_xml(answer.body);
    return xml.ok() && !xml->text_of("UploadId").empty();
  };
  TORNASOLE_TRY(const S3Answer answer, client.call(request));
  if (!is_success(answer)) return client.to_error("write", key, answer);
  TORNASOLE_TRY(const XmlElement xml, parse_xml(answer.http.body));
  MultipartUpload upload;
  upload.key_ = std::move(key);
  upload.id_ = std::string(xml.text_of("UploadId"));
  return upload;
}

Status MultipartUpload::add_part(S3Client& client, ByteView bytes) {
  const std::uint32_t crc = crc32c(bytes);
  TORNASOLE_TRY(const S3Answer answer,
                client.call({.method = "PUT",
                             .key = key_,
                             .query = {{"partNumber", std::to_string(parts_.size() + 1)}, {"uploadId", id_}},
                             .headers = {{std::string(kChecksumHeader), checksum_text(crc)}},
                             .body = bytes}));
  if (!is_success(answer)) return client.to_error("write", key_, answer);
  parts_.push_back({std::string(answer.http.header("etag")), crc});
  size_bytes_ += bytes.size();
  return {};
}

Status MultipartUpload::complete(S3Client& client, IfThere if_there) {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  Bytes checksums;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::string etag;
    for (const char c : parts_[i].etag) etag += c == '"' ? std::string("&quot;") : std::string(1, c);
    body += fmt::format("<Part><ChecksumCRC32C>{}</ChecksumCRC32C><ETag>{}</ETag><PartNumber>{}</PartNumber></Part>",
                        checksum_text(parts_[i].crc), etag, i + 1);
    checksums += big_endian(parts_[i].crc);
  }
  body += "</CompleteMultipartUpload>";
  S3Request request{.method = "POST", .key = key_, .query = {{"uploadId", id_}}, .body = body};
  if (if_there != IfThere::kReplace) request.headers.emplace_back("if-none-match", "*");
  // The service may say 200 and fail afterwards: the error is then in the body.
  request.is_sound = [](const HttpAnswer& answer) { return parse_service_error(answer.body).code.empty(); };
  TORNASOLE_TRY(S3Answer answer, client.call(request));
  if (answer.http.status == 501 && if_there != IfThere::kReplace) {
    TORNASOLE_TRY(const bool is_taken, is_there(client, key_));
    if (is_taken) return taken_error(client, key_);
    request.headers.clear();
    TORNASOLE_TRY(answer, client.call(request));
  }
  if (is_success(answer)) return {};
  const bool may_be_ours = answer.tries > 1 || if_there == IfThere::kAcceptIfSame;
  if (may_be_ours && (answer.http.status == 404 || answer.http.status == 412)) {
    const auto facts = head_object(client, key_);
    const std::string expected = fmt::format("{}-{}", checksum_text(crc32c(checksums)), parts_.size());
    if (facts.ok() && facts->size_bytes == size_bytes_ && (facts->checksum.empty() || facts->checksum == expected)) {
      return {};
    }
  }
  return client.to_error("write", key_, answer);
}

void MultipartUpload::abort(S3Client& client) noexcept {
  try {
    [[maybe_unused]] const auto answer = client.call({.method = "DELETE", .key = key_, .query = {{"uploadId", id_}}});
  } catch (...) {  // no memory: the parts stay until the bucket's own rules remove them
    return;
  }
}

}  // namespace tornasole::store::s3
