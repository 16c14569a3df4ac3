// A whole namespace, read over its management API, as Config.json.
//
// Any Service Bus namespace has that API; exchanges are read where the server has them. The file holds what
// is needed to make the entities again, keys of their access rules included: it is a secret. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "client/admin_client.hpp"
#include "transfer/inventory.hpp"

namespace omnibus::transfer {

struct Export {
  JsonValue config{};
  Notes notes{};
  std::size_t queues = 0;
  std::size_t topics = 0;
  std::size_t subscriptions = 0;
  std::size_t rules = 0;
  std::size_t exchanges = 0;
};
// `told` hears of each entity as it is read. Fails as the client does.
[[nodiscard]] Result<Export> export_namespace(client::AdminClient& client,
                                              const std::function<void(const std::string&)>& told);

// One entity as its description says it; `rules` of a subscription. `partitions` as correct_size() has it.
void take_description(InventoryEntity& entity, const client::Description& description, Notes& notes,
                      std::optional<std::uint32_t> partitions = std::nullopt);

}  // namespace omnibus::transfer
