package inspect

import "github.com/waybill-cli/waybill/internal/inspect"

// trackingRoutes are the routes of trackings.
func (p *Page) trackingRoutes() []inspect.Route { return nil }
