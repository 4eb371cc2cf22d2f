package inspect

import "github.com/waybill-cli/waybill/internal/inspect"

// sendRoutes are the routes that send a delivery again.
func (p *Page) sendRoutes() []inspect.Route { return nil }
