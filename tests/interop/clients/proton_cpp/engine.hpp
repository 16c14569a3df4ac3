// Proton's engine on a blocking socket: one connection with one session, driven until something has happened.
//
// Every wait ends after `give_up` with an exception, as does a connection or link that the broker closes.
#pragma once

#include <proton/connection_driver.h>
#include <proton/delivery.h>
#include <proton/link.h>
#include <proton/message.h>

#include <functional>
#include <optional>
#include <string>

namespace interop {

using Fill = std::function<void(pn_data_t*)>;

class Engine {
 public:
  Engine(const std::string& host, const std::string& port, const std::string& user,
         const std::string& password);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] pn_link_t* sender(const std::string& address);
  [[nodiscard]] pn_link_t* receiver(const std::string& address);
  [[nodiscard]] pn_link_t* coordinator();

  // Sends a message with that body, in a delivery state if there is one, and waits for its outcome.
  pn_delivery_t* send(pn_link_t* link, const Fill& body, std::uint64_t state = 0, const Fill& data = {});
  // The next message of a receiver, whose body is text; nothing when none comes in time.
  struct Received {
    pn_delivery_t* delivery = nullptr;
    std::string text;
    std::uint32_t delivery_count = 0;
  };
  [[nodiscard]] std::optional<Received> receive(pn_link_t* link, int milliseconds);
  // Settles a delivery with a state of ours and sees that it is written.
  void settle(pn_delivery_t* delivery, std::uint64_t state, const Fill& data = {});

 private:
  // False: the time was up first.
  bool run_until(const std::function<bool()>& done, int milliseconds);
  void require(const std::function<bool()>& done, const std::string& what);
  pn_link_t* open(pn_link_t* link);

  pn_connection_driver_t driver_{};
  pn_session_t* session_ = nullptr;
  int socket_ = -1;
  std::uint64_t tags_ = 0;
  std::string trouble_;
};

}  // namespace interop
