#include "admin/atom_xml.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

namespace omnibus::admin {
namespace {

TEST(AtomXml, PrefixesAreResolvedWhereTheyStand) {
  const auto root = parse_xml(
      "\xef\xbb\xbf<?xml version=\"1.0\"?><a:entry xmlns:a=\"http://www.w3.org/2005/Atom\">"
      "<x xmlns=\"urn:x\" xmlns:p4=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "p4:type=\"l28:string\" xmlns:l28=\"http://www.w3.org/2001/XMLSchema\">one&amp;<![CDATA[<two>]]></x>"
      "<y/></a:entry>");
  ASSERT_TRUE(root) << root.error().detail;
  EXPECT_EQ(root->name, "entry");
  EXPECT_EQ(root->space, atom_namespace);
  const auto* x = root->find("x");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->space, "urn:x");
  EXPECT_EQ(x->type, "string");
  EXPECT_EQ(x->type_space, schema_namespace);
  EXPECT_EQ(x->text, "one&<two>");
  EXPECT_EQ(root->find("y")->space, "") << "the default namespace ended with x";
}

TEST(AtomXml, AnAttributeOfAnotherNamespaceIsNoType) {
  const auto root = parse_xml("<a type=\"x\" b:type=\"y\" xmlns:b=\"urn:b\"/>");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->type, "");
}

TEST(AtomXml, DocumentTypesAreRefused) {
  EXPECT_FALSE(parse_xml("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"));
  EXPECT_FALSE(parse_xml("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"));
}

TEST(AtomXml, BrokenTextIsRefused) {
  for (const auto* text : {"", "text", "<a>", "<a></b>", "<a/><b/>", "<a \xff=''/>", "{}"})
    EXPECT_FALSE(parse_xml(text)) << text;
}

TEST(AtomXml, DepthAndNumberAreBounded) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "<a>";
    for (std::size_t i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_TRUE(parse_xml(nested(xml_depth_max)));
  EXPECT_FALSE(parse_xml(nested(xml_depth_max + 1)));
  std::string many = "<a>";
  for (std::size_t i = 0; i < xml_elements_max; ++i) many += "<b/>";
  EXPECT_FALSE(parse_xml(many + "</a>"));
  EXPECT_FALSE(parse_xml("<a>" + std::string(xml_bytes_max, ' ') + "</a>"));
}

std::string with_attributes(std::size_t count, std::string_view name) {
  std::string text = "<a";
  for (std::size_t i = 0; i < count; ++i) text += fmt::format(" {}{}=\"urn:{}\"", name, i, i);
  return text + "/>";
}

TEST(AtomXml, AttributesAndPrefixesAreBounded) {
  const auto refused = [](const std::string& text, std::string_view why) {
    const auto root = parse_xml(text);
    ASSERT_FALSE(root) << why;
    EXPECT_EQ(root.error().code, Errc::argument_error);
    EXPECT_NE(root.error().detail.find(why), std::string::npos) << root.error().detail;
  };
  EXPECT_TRUE(parse_xml(with_attributes(xml_attributes_max, "x")));
  refused(with_attributes(xml_attributes_max + 1, "x"), "more than 64 attributes");
  EXPECT_TRUE(parse_xml(with_attributes(xml_prefixes_max, "xmlns:x")));

  // Those of outer elements count too, and are forgotten where they end.
  const auto nested = [](std::size_t depth, std::size_t each) {
    std::string open;
    std::string close;
    for (std::size_t i = 0; i < depth; ++i) {
      open += "<a";
      for (std::size_t j = 0; j < each; ++j) open += fmt::format(" xmlns:p{}=\"urn:p\"", j);
      open += ">";
      close += "</a>";
    }
    return open + close;
  };
  EXPECT_TRUE(parse_xml(nested(16, 4)));
  refused(nested(13, 5), "more than 64 XML namespaces");
  EXPECT_TRUE(parse_xml("<r>" + nested(16, 4) + nested(16, 4) + "</r>"));

  const auto of_address = [](std::size_t bytes) {
    return "<a xmlns=\"" + std::string(bytes, 'u') + "\"><b/></a>";
  };
  EXPECT_TRUE(parse_xml(of_address(xml_address_bytes_max)));
  refused(of_address(xml_address_bytes_max + 1), "more than 256 bytes");
}

// What would be the product of two large numbers is the sum of them at most: nobody waits for these.
TEST(AtomXml, ABodyOfTheLargestSizeCostsLittle) {
  std::string prefixes = "<a";
  while (prefixes.size() < xml_bytes_max - 20) prefixes += " xmlns:a=\"\"";
  std::string elements = "<a xmlns=\"" + std::string(xml_bytes_max - 250'000, 'u') + "\">";
  for (int i = 0; i < 49'000; ++i) elements += "<b/>";
  // At every limit at once: as many elements and attributes as fit behind as many prefixes as may be.
  std::string all = "<a";
  for (std::size_t i = 0; i < xml_prefixes_max; ++i)
    all += fmt::format(" xmlns:p{}=\"{}\"", i, std::string(xml_address_bytes_max, 'u'));
  all += ">";
  while (all.size() < xml_bytes_max - 40) all += "<b q:c=\"\" q:d=\"\" q:e=\"\"/>";
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(parse_xml(prefixes + "/>"));
  EXPECT_FALSE(parse_xml(elements + "</a>"));
  EXPECT_TRUE(parse_xml(all + "</a>"));
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC) << "on a slow, watched build";
}

TEST(AtomXml, WhatIsWrittenReadsBack) {
  XmlWriter out;
  out.open("a", "x=\"1\"");
  out.element("b", "<&>\"'\r\n\x01 żółć");
  out.empty("c");
  out.element("d", std::int64_t{-5});
  out.close("a");
  const std::string text = out.take();
  EXPECT_EQ(text, "<a x=\"1\"><b>&lt;&amp;&gt;&quot;'&#13;\n? żółć</b><c/><d>-5</d></a>");
  const auto back = parse_xml(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->find("b")->text, "<&>\"'\r\n? żółć");
}

}  // namespace
}  // namespace omnibus::admin
