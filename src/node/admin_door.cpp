#include "node/admin_desk.hpp"

namespace omnibus::node {

// What is given to the door may only be let go at home: it holds the right to answer a client of this shard.
template <class T>
AdminDoor::Answer<T> AdminDoor::at_home(Answer<T> answer) {
  return [this, answer = std::move(answer)](Result<T> result) mutable {
    home_.post(while_alive(life_, [answer = std::move(answer), result = std::move(result)]() mutable {
      answer(std::move(result));
    }));
  };
}

void AdminDoor::find(std::string name, Answer<admin::Entity> answer) {
  desk_.post([this, name = std::move(name), answer = at_home(std::move(answer))]() mutable {
    desk_.find(name, std::move(answer));
  });
}

void AdminDoor::list(Listing listing, Answer<admin::Page<admin::Entity>> answer) {
  desk_.post([this, listing = std::move(listing), answer = at_home(std::move(answer))]() mutable {
    desk_.list(listing, std::move(answer));
  });
}

void AdminDoor::create(admin::Entity entity, std::vector<rules::Rule> rules, Answer<admin::Entity> answer) {
  desk_.post([this, entity = std::move(entity), rules = std::move(rules),
              answer = at_home(std::move(answer))]() mutable {
    desk_.create(std::move(entity), std::move(rules), std::move(answer));
  });
}

void AdminDoor::update(admin::Entity entity, Answer<admin::Entity> answer) {
  desk_.post([this, entity = std::move(entity), answer = at_home(std::move(answer))]() mutable {
    desk_.update(std::move(entity), std::move(answer));
  });
}

void AdminDoor::remove(std::string name, bool is_subscription, Answer<void> answer) {
  desk_.post([this, name = std::move(name), is_subscription, answer = at_home(std::move(answer))]() mutable {
    desk_.remove(name, is_subscription, std::move(answer));
  });
}

void AdminDoor::list_rules(std::string subscription, std::uint32_t skip, std::uint32_t top,
                           Answer<admin::Page<rules::Rule>> answer) {
  desk_.post([this, subscription = std::move(subscription), skip, top,
              answer = at_home(std::move(answer))]() mutable {
    desk_.list_rules(subscription, skip, top, std::move(answer));
  });
}

void AdminDoor::find_rule(std::string subscription, std::string rule, Answer<rules::Rule> answer) {
  desk_.post([this, subscription = std::move(subscription), rule = std::move(rule),
              answer = at_home(std::move(answer))]() mutable {
    desk_.find_rule(subscription, std::move(rule), std::move(answer));
  });
}

void AdminDoor::put_rule(std::string subscription, rules::Rule rule, bool replaces,
                         Answer<rules::Rule> answer) {
  desk_.post([this, subscription = std::move(subscription), rule = std::move(rule), replaces,
              answer = at_home(std::move(answer))]() mutable {
    desk_.put_rule(subscription, std::move(rule), replaces, std::move(answer));
  });
}

void AdminDoor::remove_rule(std::string subscription, std::string rule, Answer<void> answer) {
  desk_.post([this, subscription = std::move(subscription), rule = std::move(rule),
              answer = at_home(std::move(answer))]() mutable {
    desk_.remove_rule(subscription, rule, std::move(answer));
  });
}

void AdminDoor::put_document(DocumentPut put, Answer<DocumentAnswer> answer) {
  desk_.post([this, put = std::move(put), answer = at_home(std::move(answer))]() mutable {
    desk_.put_document(std::move(put), std::move(answer));
  });
}

void AdminDoor::find_document(std::string exchange, std::string subscription, Answer<std::string> answer) {
  desk_.post([this, exchange = std::move(exchange), subscription = std::move(subscription),
              answer = at_home(std::move(answer))]() mutable {
    desk_.find_document(exchange, subscription, std::move(answer));
  });
}

void AdminDoor::list_documents(std::uint32_t skip, std::uint32_t top,
                               Answer<admin::Page<std::string>> answer) {
  desk_.post([this, skip, top, answer = at_home(std::move(answer))]() mutable {
    desk_.list_documents(skip, top, std::move(answer));
  });
}

void AdminDoor::audit(const admin::AuditEvent& event) {
  admin::AuditEvent whole = event;
  whole.name_space = name_space_;
  tell_audit(audit_log_, whole);
}

}  // namespace omnibus::node
