// Every performative as the contract wants it on the wire: all fields, never the empty list.
#include "amqp/codec/composite.hpp"

#include <gtest/gtest.h>

#include <string>

#include "amqp/codec/performatives.hpp"
#include "amqp/codec/value.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

template <class T>
std::size_t fields_on_wire(const T& value) {
  const auto bytes = encode_composite(value);
  EXPECT_NE(bytes[3], code::list0);
  const auto decoded = decode_value({bytes});
  EXPECT_TRUE(decoded) << T::name;
  const auto* described = decoded->template get_if<Described>();
  EXPECT_EQ(described->descriptor().as_unsigned(), T::descriptor);
  return described->value().items().size();
}

TEST(Composite, PerformativesAreWrittenWithAllFields) {
  EXPECT_EQ(fields_on_wire(Open{}), 10u);
  EXPECT_EQ(fields_on_wire(Begin{}), 8u);
  EXPECT_EQ(fields_on_wire(Attach{}), 14u);
  EXPECT_EQ(fields_on_wire(Flow{}), 11u);
  EXPECT_EQ(fields_on_wire(Transfer{}), 11u);
  EXPECT_EQ(fields_on_wire(Disposition{}), 6u);
  EXPECT_EQ(fields_on_wire(Detach{}), 3u);
  EXPECT_EQ(fields_on_wire(End{}), 1u);
  EXPECT_EQ(fields_on_wire(Close{}), 1u);
  EXPECT_EQ(fields_on_wire(ErrorFields{}), 3u);
  EXPECT_EQ(fields_on_wire(Source{}), 11u);
  EXPECT_EQ(fields_on_wire(Target{}), 7u);
  EXPECT_EQ(fields_on_wire(Coordinator{}), 1u);
  EXPECT_EQ(fields_on_wire(Declare{}), 1u);
  EXPECT_EQ(fields_on_wire(Discharge{}), 2u);
  EXPECT_EQ(fields_on_wire(Declared{}), 1u);
  EXPECT_EQ(fields_on_wire(TransactionalState{}), 2u);
  EXPECT_EQ(fields_on_wire(Received{}), 2u);
  EXPECT_EQ(fields_on_wire(Rejected{}), 1u);
  EXPECT_EQ(fields_on_wire(Modified{}), 3u);
  EXPECT_EQ(fields_on_wire(Header{}), 5u);
  EXPECT_EQ(fields_on_wire(Properties{}), 13u);
  EXPECT_EQ(fields_on_wire(SaslMechanisms{}), 1u);
  EXPECT_EQ(fields_on_wire(SaslInit{}), 3u);
  EXPECT_EQ(fields_on_wire(SaslChallenge{}), 1u);
  EXPECT_EQ(fields_on_wire(SaslResponse{}), 1u);
  EXPECT_EQ(fields_on_wire(SaslOutcome{}), 2u);
}

TEST(Composite, BytesOfATransferAndItsKin) {
  Transfer transfer;
  transfer.handle = 1;
  transfer.delivery_id = 300;
  const std::string tag = "\x01\x02";
  transfer.delivery_tag = as_bytes(tag);
  transfer.message_format = 0;
  transfer.settled = false;
  transfer.more = true;
  EXPECT_EQ(hex(encode_composite(transfer)),
            "005314c0140b5201700000012ca0020102434241"
            "4040404040");
  Disposition disposition;
  disposition.role = true;
  disposition.first = 5;
  disposition.settled = true;
  const auto accepted = unhex("00532445");
  disposition.state = {as_bytes(*accepted)};
  EXPECT_EQ(hex(encode_composite(disposition)),
            "005315c00b064152054041"
            "00532445"
            "40");
  EXPECT_EQ(hex(encode_composite(Close{})), "005318c0020140");
}

TEST(Composite, ListGrowsWideAt256Bytes) {
  for (const std::size_t length :
       {std::size_t{200}, std::size_t{241}, std::size_t{242}, std::size_t{243}, std::size_t{244},
        std::size_t{255}, std::size_t{256}, std::size_t{70000}}) {
    const std::string name(length, 'x');
    Open open;
    open.container_id = name;
    open.hostname = "h";
    const auto bytes = encode_composite(open);
    const auto body = bytes.size() - 3 - (bytes[3] == code::list8 ? 3 : 9);
    EXPECT_EQ(bytes[3] == code::list8, body + 1 < 256) << length;
    const auto again = decode_composite<Open>({bytes});
    ASSERT_TRUE(again) << length << again.error().detail;
    EXPECT_EQ(again->container_id, name);
    EXPECT_EQ(again->hostname, "h");
    EXPECT_FALSE(again->max_frame_size);
  }
}

// Senders leave trailing fields out; what is absent stays unset.
TEST(Composite, ShortListsAreRead) {
  const auto bytes = unhex("005310c00401a10163");
  const auto open = decode_composite<Open>({as_bytes(*bytes)});
  ASSERT_TRUE(open) << open.error().detail;
  EXPECT_EQ(open->container_id, "c");
  EXPECT_FALSE(open->hostname);
  EXPECT_TRUE(open->properties.is_null());
  const auto empty = unhex("00531845");
  EXPECT_TRUE(decode_composite<Close>({as_bytes(*empty)}));
}

TEST(Composite, NamesTheMandatoryFieldThatIsMissing) {
  const auto refused = [](auto type, const char* encoded, const char* field) {
    const auto bytes = unhex(encoded);
    const auto read = decode_composite<decltype(type)>({as_bytes(*bytes)});
    ASSERT_FALSE(read) << encoded;
    EXPECT_EQ(read.error().code, Errc::invalid_field);
    EXPECT_NE(read.error().detail.find(field), std::string::npos) << read.error().detail;
  };
  refused(Open{}, "00531045", "container-id");
  refused(Open{}, "005310c0020140", "container-id");
  refused(Begin{},
          "005311c0030240"
          "43",
          "incoming-window");
  refused(Attach{}, "005312c00502a1016143", "role");
  refused(Flow{}, "005313c00403404343", "outgoing-window");
  refused(Transfer{}, "00531445", "handle");
  refused(Disposition{}, "005315c0020141", "first");
  refused(Detach{}, "005316c0020140", "handle");
  refused(ErrorFields{}, "00531dc0020140", "condition");
  refused(SaslInit{}, "00534145", "mechanism");
}

TEST(Composite, RefusesWhatIsNoSuchComposite) {
  const auto refused = [](const char* encoded) {
    const auto bytes = unhex(encoded);
    const auto read = decode_composite<Detach>({as_bytes(*bytes)});
    ASSERT_FALSE(read) << encoded;
    EXPECT_EQ(read.error().code, Errc::decode_error) << encoded;
  };
  refused("005317c0020143");  // end
  refused("43");              // not described
  refused("");                // nothing
  refused("005316c1020143");  // a map
  refused("005316c0020141");  // handle as boolean
  refused(
      "005316c00302"
      "5201");  // closed beyond the list
  refused(
      "005316c0030143"
      "40");  // a byte that no field owns
  refused(
      "005316c006017"
      "1ffffffff");  // negative handle
  refused(
      "005316c00901"
      "800000000100000000");  // handle above 2^32 - 1
}

// A later version of the spec may add fields; they are left unread.
TEST(Composite, LongerListsAreRead) {
  const auto bytes = unhex(
      "005316c00a05"
      "4341"
      "40"
      "a10178"
      "a10179");
  const auto detach = decode_composite<Detach>({as_bytes(*bytes)});
  ASSERT_TRUE(detach) << detach.error().detail;
  EXPECT_EQ(detach->closed, true);
}

TEST(Composite, CutAtEveryByteIsRefused) {
  Attach attach;
  attach.link_name = "link";
  attach.handle = 70000;
  attach.max_message_size = 1 << 20;
  attach.snd_settle_mode = 2;
  const auto whole = encode_composite(attach);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(decode_composite<Attach>({cut})) << length;
  }
  EXPECT_TRUE(decode_composite<Attach>({whole}));
}

}  // namespace
}  // namespace omnibus::amqp
