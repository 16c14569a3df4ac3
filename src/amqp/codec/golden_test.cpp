// What Proton and rhea put on the wire, byte for byte: it must mean to us what it means to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

constexpr std::size_t unbounded = 1 << 20;

struct Line {
  std::string file, name, bytes, meaning;
};

std::vector<Line> golden(std::string_view ending) {
  std::vector<Line> lines;
  for (const auto& entry : std::filesystem::directory_iterator{GOLDEN_FOLDER}) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(ending)) continue;
    std::ifstream in{entry.path()};
    for (std::string text; std::getline(in, text);) {
      if (text.empty() || text[0] == '#') continue;
      const auto first = text.find(' ');
      const auto second = text.find(' ', first + 1);
      EXPECT_NE(second, std::string::npos) << file << ": " << text;
      const auto bytes = unhex(std::string_view{text}.substr(first + 1, second - first - 1));
      EXPECT_TRUE(bytes) << file << ": " << text;
      lines.push_back({file, text.substr(0, first), bytes.value_or(""), text.substr(second + 1)});
    }
  }
  return lines;
}

// Encoding again gives an equal value, and never more bytes than the other side needed.
void expect_round_trip(const Line& line, const Value& value, std::size_t size) {
  const auto again = encode(value);
  EXPECT_LE(again.size(), size) << line.file << " " << line.name;
  const auto decoded = decode_value({again});
  ASSERT_TRUE(decoded) << line.file << " " << line.name;
  EXPECT_EQ(*decoded, value) << line.file << " " << line.name;
}

// The golden names tell where the sender chose a wider form than it needed to.
bool is_shortest(const Value& value, std::string_view bytes) { return encode(value).size() == bytes.size(); }

TEST(Golden, ValuesMeanWhatTheirSenderMeant) {
  const auto lines = golden("_values.txt");
  ASSERT_GT(lines.size(), 100u);
  std::size_t same = 0;
  for (const Line& line : lines) {
    const auto value = decode_value({as_bytes(line.bytes)});
    ASSERT_TRUE(value) << line.file << " " << line.name << ": " << value.error().detail;
    EXPECT_EQ(to_text(*value, unbounded), line.meaning) << line.file << " " << line.name;
    expect_round_trip(line, *value, line.bytes.size());
    if (is_shortest(*value, line.bytes)) {
      EXPECT_EQ(hex(encode(*value)), hex(as_bytes(line.bytes))) << line.file << " " << line.name;
      ++same;
    }
  }
  // Most values have one form only, or were written in their shortest.
  EXPECT_GT(same, lines.size() / 2);
}

TEST(Golden, MessagesSplitIntoTheirSections) {
  const auto lines = golden("_messages.txt");
  ASSERT_GT(lines.size(), 10u);
  for (const Line& line : lines) {
    std::string meaning;
    for (Decoder in{as_bytes(line.bytes)}; !in.at_end();) {
      const auto value = decode_value(in.read_value());
      ASSERT_TRUE(in.ok() && value) << line.file << " " << line.name;
      if (!meaning.empty()) meaning += " / ";
      meaning += to_text(*value, unbounded);
    }
    EXPECT_EQ(meaning, line.meaning) << line.file << " " << line.name;

    const auto view = MessageView::parse(as_bytes(line.bytes));
    ASSERT_TRUE(view) << line.file << " " << line.name << ": " << view.error().detail;
    EXPECT_TRUE(view->header()) << line.name;
    EXPECT_TRUE(view->properties()) << line.name;
    EXPECT_GT(view->body_section_count(), 0u) << line.name;
    EXPECT_TRUE(view->unknown_sections().empty()) << line.name;
  }
}

std::span<const Value> fields_of(const Value& composite) {
  return composite.get_if<Described>()->value().items();
}

// Reads a performative by its table; the fields we do not keep as RawValue are checked by it.
template <class T>
void expect_performative(const Line& line, const RawValue& raw, bool& known) {
  Decoder in{raw.bytes};
  if (in.read_descriptor() != T::descriptor) return;
  known = true;
  const auto read = decode_composite<T>(raw);
  ASSERT_TRUE(read) << line.file << " " << line.name << ": " << read.error().detail;
  // Written by us it has all fields; reading that gives the same bytes again.
  const auto written = encode_composite(*read);
  const auto again = decode_composite<T>(RawValue{written});
  ASSERT_TRUE(again) << line.name;
  EXPECT_EQ(hex(encode_composite(*again)), hex(written)) << line.name;
  // What the other side sent is a prefix of what we write; behind it are only nulls.
  const auto theirs = decode_value(raw);
  const auto ours = decode_value({written});
  ASSERT_TRUE(theirs && ours) << line.name;
  const auto their_fields = fields_of(*theirs);
  const auto our_fields = fields_of(*ours);
  ASSERT_EQ(our_fields.size(), field_count<T>()) << line.name;
  for (std::size_t i = 0; i < our_fields.size(); ++i)
    EXPECT_EQ(our_fields[i], i < their_fields.size() ? their_fields[i] : Value{}) << line.name << " " << i;
}

TEST(Golden, FramesHoldPerformativesOfTheTables) {
  auto lines = golden("_frames.txt");
  for (auto& line : golden("_captured.txt")) lines.push_back(std::move(line));
  ASSERT_GT(lines.size(), 50u);
  for (const Line& line : lines) {
    std::istringstream words{line.meaning};
    std::string kind;
    words >> kind;
    if (kind == "header") {
      EXPECT_EQ(line.bytes.substr(0, 4), "AMQP") << line.name;
      continue;
    }
    ASSERT_GE(line.bytes.size(), 8u) << line.name;
    const Bytes frame = as_bytes(line.bytes);
    EXPECT_EQ(load_be<std::uint32_t>(frame.data()), frame.size()) << line.name;
    EXPECT_EQ(frame[5], kind == "sasl" ? 1 : 0) << line.name;
    std::string meaning = kind + " " + std::to_string(load_be<std::uint16_t>(frame.data() + 6)) + " ";
    Decoder in{frame.subspan(std::size_t{frame[4]} * 4)};
    if (in.at_end()) {
      EXPECT_EQ(meaning + "empty", line.meaning) << line.name;
      continue;
    }
    const RawValue raw = in.read_value();
    const auto value = decode_value(raw);
    ASSERT_TRUE(value) << line.file << " " << line.name << ": " << value.error().detail;
    meaning += to_text(*value, unbounded);
    if (!in.at_end()) meaning += " | " + hex(in.rest());
    EXPECT_EQ(meaning, line.meaning) << line.file << " " << line.name;
    expect_round_trip(line, *value, raw.bytes.size());

    bool known = false;
    expect_performative<Open>(line, raw, known);
    expect_performative<Begin>(line, raw, known);
    expect_performative<Attach>(line, raw, known);
    expect_performative<Flow>(line, raw, known);
    expect_performative<Transfer>(line, raw, known);
    expect_performative<Disposition>(line, raw, known);
    expect_performative<Detach>(line, raw, known);
    expect_performative<End>(line, raw, known);
    expect_performative<Close>(line, raw, known);
    expect_performative<SaslMechanisms>(line, raw, known);
    expect_performative<SaslInit>(line, raw, known);
    expect_performative<SaslChallenge>(line, raw, known);
    expect_performative<SaslResponse>(line, raw, known);
    expect_performative<SaslOutcome>(line, raw, known);
    EXPECT_TRUE(known) << line.name;
  }
}

}  // namespace
}  // namespace omnibus::amqp
