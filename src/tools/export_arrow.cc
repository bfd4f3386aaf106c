// Arrow's IPC file format, version 5 of its metadata:
//
//   ARROW1 00 00 | schema | record batch * | end of stream | footer | its length | ARROW1
//
// A message is FF FF FF FF, the length of its metadata, the metadata (FlatBuffers), and a body of buffers; all are
// padded to 8 bytes. The footer repeats the schema and says where the batches are.
//
// One row is one value. `value` holds the elements as doubles, of complex ones the real and imaginary parts in turn;
// `texts` those of string tensors; with a binary column, `data` holds the elements as they are in memory.

#include <cmath>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "tools/elements.h"
#include "tools/export_writer.h"
#include "tools/flat_builder.h"

namespace tornasole::tools {
namespace {

constexpr std::int16_t kMetadataVersion = 4;  // V5
constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;
constexpr std::int64_t kBatchRows = 65'536;
// A column counts in 32 bits, and a value becomes eight bytes an element.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 27;
constexpr std::uint64_t kMaxColumnBytes = (std::uint64_t{1} << 31) - 1;

enum class ColumnType : std::uint8_t { kInt64 = 2, kDouble = 3, kBinary = 4, kUtf8 = 5, kList = 12 };

template <typename T>
void append(Bytes* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A column of one batch: numbers, bytes, or lists of another column.
struct Column {
  std::string_view name;
  ColumnType type = ColumnType::kInt64;
  std::unique_ptr<Column> items = {};  // of a list

  std::int64_t rows = 0;
  std::int64_t nulls = 0;
  Bytes validity = {};  // one byte per row here, one bit in the file
  Bytes offsets = {};   // of bytes and lists
  Bytes data = {};

  bool has_offsets() const { return type != ColumnType::kInt64 && type != ColumnType::kDouble; }
  std::uint64_t size_bytes() const { return offsets.size() + data.size() + (items ? items->size_bytes() : 0); }
  void clear() {
    rows = nulls = 0;
    validity.clear();
    offsets.clear();
    data.clear();
    if (items) items->clear();
  }
  // Ends the row that was appended to data or items.
  void end_row(bool is_valid = true) {
    if (has_offsets() && offsets.empty()) append(&offsets, std::int32_t{0});
    ++rows;
    nulls += is_valid ? 0 : 1;
    validity += is_valid ? '\1' : '\0';
    if (has_offsets()) append(&offsets, static_cast<std::int32_t>(items ? items->rows : std::ssize(data)));
  }
  void add(std::int64_t number) {
    append(&data, number);
    end_row();
  }
  void add(double number) {
    append(&data, number);
    end_row();
  }
  void add(std::string_view bytes) {
    data += bytes;
    end_row();
  }
};

Column make_column(std::string_view name, ColumnType type) { return {.name = name, .type = type}; }
Column make_list(std::string_view name, ColumnType items) {
  Column list = make_column(name, ColumnType::kList);
  list.items = std::make_unique<Column>(make_column("item", items));
  return list;
}

FlatBuilder::Part add_type(FlatBuilder& builder, ColumnType type) {
  builder.begin_table();
  if (type == ColumnType::kInt64) {
    builder.set<std::int32_t>(0, 64);
    builder.set<std::uint8_t>(1, 1);  // signed
  } else if (type == ColumnType::kDouble) {
    builder.set<std::int16_t>(0, 2);
  }
  return builder.end_table();
}

FlatBuilder::Part add_field(FlatBuilder& builder, const Column& column) {
  const FlatBuilder::Part name = builder.add_string(column.name);
  const FlatBuilder::Part type = add_type(builder, column.type);
  std::vector<FlatBuilder::Part> items;
  if (column.items) items.push_back(add_field(builder, *column.items));
  const FlatBuilder::Part children = builder.add_vector(items);
  builder.begin_table();
  builder.set_part(0, name);
  builder.set_part(3, type);
  builder.set_part(5, children);
  builder.set<std::uint8_t>(1, 1);  // may be null
  builder.set<std::uint8_t>(2, static_cast<std::uint8_t>(column.type));
  return builder.end_table();
}

FlatBuilder::Part add_schema(FlatBuilder& builder, const std::vector<Column>& columns) {
  std::vector<FlatBuilder::Part> fields;
  for (const Column& column : columns) fields.push_back(add_field(builder, column));
  const FlatBuilder::Part vector = builder.add_vector(fields);
  builder.begin_table();
  builder.set_part(1, vector);
  return builder.end_table();
}

enum class Header : std::uint8_t { kSchema = 1, kRecordBatch = 3 };

Bytes finish_message(FlatBuilder& builder, Header type, FlatBuilder::Part header, std::int64_t body_bytes) {
  builder.begin_table();
  builder.set<std::int64_t>(3, body_bytes);
  builder.set_part(2, header);
  builder.set<std::int16_t>(0, kMetadataVersion);
  builder.set<std::uint8_t>(1, static_cast<std::uint8_t>(type));
  const Bytes metadata = builder.finish(builder.end_table());
  Bytes message;
  append(&message, std::uint32_t{0xFFFFFFFF});
  append(&message, static_cast<std::int32_t>(metadata.size()));
  return message + metadata;
}

// The nodes, buffers and body of a batch, column by column, a list before its items.
struct Body {
  Bytes nodes, buffers, bytes;
  std::size_t node_count = 0, buffer_count = 0;

  void add_buffer(ByteView content) {
    append(&buffers, static_cast<std::int64_t>(bytes.size()));
    append(&buffers, static_cast<std::int64_t>(content.size()));
    ++buffer_count;
    bytes += content;
    bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
  }
  void add(const Column& column) {
    append(&nodes, column.rows);
    append(&nodes, column.nulls);
    ++node_count;
    Bytes bits;
    if (column.nulls > 0) {
      bits.assign(static_cast<std::size_t>(column.rows + 7) / 8, '\0');
      for (std::size_t i = 0; i < column.validity.size(); ++i) {
        if (column.validity[i] != 0) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
      }
    }
    add_buffer(bits);
    if (column.has_offsets()) {
      const Bytes none(4, '\0');
      add_buffer(column.offsets.empty() ? none : column.offsets);
    }
    if (column.items) {
      add(*column.items);
    } else {
      add_buffer(column.data);
    }
  }
};

class ArrowWriter final : public ExportWriter {
 public:
  ArrowWriter(std::unique_ptr<store::PendingFile> file, const ExportOptions& options, ExportReport* report)
      : file_(std::move(file)), options_(options), report_(*report) {
    columns_.push_back(make_column("step", ColumnType::kInt64));
    columns_.push_back(make_column("mode", ColumnType::kUtf8));
    columns_.push_back(make_column("mode_step", ColumnType::kInt64));
    columns_.push_back(make_column("worker", ColumnType::kUtf8));
    columns_.push_back(make_column("tensor", ColumnType::kUtf8));
    columns_.push_back(make_column("reduction", ColumnType::kUtf8));
    columns_.push_back(make_column("dtype", ColumnType::kUtf8));
    columns_.push_back(make_list("shape", ColumnType::kInt64));
    columns_.push_back(options.arrow_binary ? make_column("data", ColumnType::kBinary)
                                            : make_list("value", ColumnType::kDouble));
    columns_.push_back(make_list("texts", ColumnType::kUtf8));
  }

  Status open() {
    TORNASOLE_CHECK(file_->append(ByteView("ARROW1\0\0", 8)));
    FlatBuilder builder;
    const FlatBuilder::Part schema = add_schema(builder, columns_);
    return file_->append(finish_message(builder, Header::kSchema, schema, 0));
  }

  Status add(const ExportedValue& value) override {
    TORNASOLE_CHECK(check_size(value.value));
    // Before, not after: a batch counts its bytes in 31 bits.
    if (size_bytes() + next_bytes(value.value) > kBatchBytes && columns_[0].rows > 0) TORNASOLE_CHECK(write_batch());
    columns_[0].add(value.global_step.number);
    columns_[1].add(mode_name(value.step.mode));
    columns_[2].add(value.step.number);
    columns_[3].add(replace_bad_utf8(value.worker));
    columns_[4].add(replace_bad_utf8(value.tensor));
    if (value.reduction) {
      columns_[5].add(reduction_name(*value.reduction));
    } else {
      columns_[5].end_row(/*is_valid=*/false);
    }
    columns_[6].add(dtype_name(value.value.dtype()));
    for (const std::int64_t extent : value.value.shape().dims()) columns_[7].items->add(extent);
    columns_[7].end_row();
    const bool is_text = value.value.dtype() == DType::kString;
    if (!is_text) add_numbers(value.value);
    columns_[8].end_row(!is_text);
    for (const std::string_view text : value.value.texts()) columns_[9].items->add(replace_bad_utf8(text));
    columns_[9].end_row(is_text);
    return columns_[0].rows < kBatchRows ? Status() : write_batch();
  }

  Status finish() override {
    if (columns_[0].rows > 0) TORNASOLE_CHECK(write_batch());
    Bytes tail;
    append(&tail, std::uint32_t{0xFFFFFFFF});
    append(&tail, std::uint32_t{0});
    const Bytes footer = make_footer();
    tail += footer;
    append(&tail, static_cast<std::int32_t>(footer.size()));
    tail += "ARROW1";
    TORNASOLE_CHECK(file_->append(tail));
    report_.files = 1;
    report_.bytes = file_->size_bytes();
    return file_->publish(options_.overwrite);
  }

 private:
  std::uint64_t size_bytes() const {
    std::uint64_t bytes = 0;
    for (const Column& column : columns_) bytes += column.size_bytes();
    return bytes;
  }
  std::uint64_t next_bytes(const TensorView& view) const {
    if (view.dtype() == DType::kString || options_.arrow_binary) return static_cast<std::uint64_t>(view.size_bytes());
    return static_cast<std::uint64_t>(view.element_count()) * 16;
  }

  Status check_size(const TensorView& view) const {
    const auto bytes = static_cast<std::uint64_t>(view.size_bytes());
    if (options_.arrow_binary || view.dtype() == DType::kString) {
      if (bytes <= kMaxColumnBytes) return {};
      return unsupported_error("{} bytes; an Arrow column holds at most {} of them", bytes, kMaxColumnBytes);
    }
    if (view.element_count() <= kMaxElements) return {};
    return unsupported_error("{} elements; as a list of doubles at most {}, with a binary column any number",
                             view.element_count(), kMaxElements);
  }

  void add_numbers(const TensorView& view) {
    if (options_.arrow_binary) {
      columns_[8].data +=
          ByteView(reinterpret_cast<const char*>(view.data()), static_cast<std::size_t>(view.size_bytes()));
      return;
    }
    Column& items = *columns_[8].items;
    visit_elements(view.dtype(), [&](auto load) {
      using Value = typename decltype(load)::Value;
      for (std::int64_t i = 0; i < view.element_count(); ++i) {
        const Value value = load(view.data(), i);
        if constexpr (kIsComplex<Value>) {
          items.add(static_cast<double>(value.real()));
          items.add(static_cast<double>(value.imag()));
        } else {
          items.add(static_cast<double>(value));
          if constexpr (sizeof(Value) == 8 && std::is_integral_v<Value>) {
            if (!is_exact(value)) ++report_.not_exact;
          }
        }
      }
    });
  }
  template <typename T>
  static bool is_exact(T value) {
    const auto number = static_cast<double>(value);
    // The largest integers round up to a number that is none of their type.
    return number < std::ldexp(1.0, std::numeric_limits<T>::digits) && static_cast<T>(number) == value;
  }

  Status write_batch() {
    Body body;
    for (const Column& column : columns_) body.add(column);
    FlatBuilder builder;
    const FlatBuilder::Part nodes = builder.add_structs(body.nodes, body.node_count);
    const FlatBuilder::Part buffers = builder.add_structs(body.buffers, body.buffer_count);
    builder.begin_table();
    builder.set<std::int64_t>(0, columns_[0].rows);
    builder.set_part(1, nodes);
    builder.set_part(2, buffers);
    const FlatBuilder::Part batch = builder.end_table();
    const Bytes message = finish_message(builder, Header::kRecordBatch, batch, std::ssize(body.bytes));
    append(&blocks_, static_cast<std::int64_t>(file_->size_bytes()));
    append(&blocks_, static_cast<std::int64_t>(message.size()));  // 32 bits and padding: the upper half is 0
    append(&blocks_, static_cast<std::int64_t>(body.bytes.size()));
    ++block_count_;
    TORNASOLE_CHECK(file_->append(message));
    TORNASOLE_CHECK(file_->append(body.bytes));
    for (Column& column : columns_) column.clear();
    return {};
  }

  Bytes make_footer() const {
    FlatBuilder builder;
    const FlatBuilder::Part schema = add_schema(builder, columns_);
    const FlatBuilder::Part dictionaries = builder.add_structs({}, 0);
    const FlatBuilder::Part batches = builder.add_structs(blocks_, block_count_);
    builder.begin_table();
    builder.set_part(1, schema);
    builder.set_part(2, dictionaries);
    builder.set_part(3, batches);
    builder.set<std::int16_t>(0, kMetadataVersion);
    return builder.finish(builder.end_table());
  }

  const std::unique_ptr<store::PendingFile> file_;
  const ExportOptions& options_;
  ExportReport& report_;
  std::vector<Column> columns_;
  Bytes blocks_;
  std::size_t block_count_ = 0;
};

}  // namespace

Result<std::unique_ptr<ExportWriter>> make_arrow_writer(const ExportTarget& target, const ExportOptions& options,
                                                        ExportReport* report) {
  TORNASOLE_TRY(auto file, target.directory->create(target.name));
  auto writer = std::make_unique<ArrowWriter>(std::move(file), options, report);
  TORNASOLE_CHECK(writer->open());
  return std::unique_ptr<ExportWriter>(std::move(writer));
}

}  // namespace tornasole::tools
