package inspect

import "github.com/waybill-cli/waybill/internal/inspect"

// deliveryRoutes are the routes of the list of deliveries.
func (p *Page) deliveryRoutes() []inspect.Route { return nil }
