package inspect

import "github.com/waybill-cli/waybill/internal/inspect"

// detailRoutes are the routes of one delivery.
func (p *Page) detailRoutes() []inspect.Route { return nil }
