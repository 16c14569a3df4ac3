// The frame of the C++ client: runs the wanted scenarios one by one and reports each on stdout.
//
// A scenario passes when it returns (its value is the detail) and fails when it throws.
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace interop {

using Scenario = std::function<std::string()>;

class Report {
 public:
  explicit Report(const char* path) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    context_ = boost::json::parse(text).as_object();
  }

  std::string text(const char* name) const { return std::string(context_.at(name).as_string()); }

  // The queue of a scenario.
  std::string queue(const std::string& scenario) const {
    return std::string(context_.at("queues").as_object().at(scenario).as_string());
  }

  // A second queue, in another store.
  std::string partner(const std::string& scenario) const {
    return std::string(context_.at("partners").as_object().at(scenario).as_string());
  }

  const boost::json::object& broker(const char* profile) const {
    return context_.at("brokers").as_object().at(profile).as_object();
  }

  // "host:port" of a broker, without a scheme.
  std::string address(const char* profile) const {
    const auto& b = broker(profile);
    return std::string(b.at("host").as_string()) + ":" + std::to_string(b.at("port").as_int64());
  }

  // Has the runner stop or start a broker and waits until it has done so.
  void ask(const char* verb, const char* profile) const {
    print({{"ask", verb}, {"broker", profile}});
    std::string answer;
    std::getline(std::cin, answer);
  }

  void run(const std::map<std::string, Scenario>& scenarios) const {
    for (const auto& wanted : context_.at("scenarios").as_array()) {
      const std::string name(wanted.as_string());
      boost::json::object verdict{
          {"scenario", name}, {"ok", false}, {"detail", "this client does not know the scenario"}};
      if (const auto found = scenarios.find(name); found != scenarios.end()) {
        try {
          verdict["detail"] = found->second();
          verdict["ok"] = true;
        } catch (const std::exception& e) {
          verdict["detail"] = e.what();
        }
      }
      print(verdict);
    }
  }

 private:
  static void print(const boost::json::object& line) {
    std::cout << boost::json::serialize(line) << std::endl;
  }

  boost::json::object context_;
};

inline void check(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

}  // namespace interop
