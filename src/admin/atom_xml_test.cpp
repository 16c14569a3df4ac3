#include "admin/atom_xml.hpp"

#include <gtest/gtest.h>

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
