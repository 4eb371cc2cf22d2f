package inspect

import "github.com/waybill-cli/waybill/internal/inspect"

// runRoutes are the routes of runs.
func (p *Page) runRoutes() []inspect.Route { return nil }
