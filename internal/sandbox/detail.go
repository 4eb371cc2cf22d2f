package sandbox

import (
	"maps"
	"net/http"
	"time"
)

// detail answers a query.
//
// Interface: Endpoints, 3. Query a tracking.
func (s *Server) detail(w http.ResponseWriter, r *http.Request) {
	if !s.admit(w, r, opDetail, http.MethodGet) {
		return
	}
	status, body := s.lookUp(r)
	if s.injectFault(w, r, opDetail, func() {}, body) {
		return
	}
	answer(w, status, body)
}

func (s *Server) lookUp(r *http.Request) (int, any) {
	refer := r.URL.Query().Get("referId")
	number := ""
	if s.config.NumberParam != Ignored {
		number = r.URL.Query().Get(s.config.NumberParam)
	}
	if refer == "" && number == "" {
		return http.StatusBadRequest, map[string]any{"message": "referId is required"}
	}
	s.state.mu.Lock()
	found := s.state.find(refer, number)
	now := s.state.now()
	s.state.mu.Unlock()
	if len(found) == 0 {
		return s.absent()
	}
	ready := found[:0:0]
	for _, p := range found {
		if !s.processing(p) {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return http.StatusOK, map[string]any{"message": "Processing"}
	}
	return http.StatusOK, s.shaped(ready, now)
}

func (s *Server) processing(p parcel) bool {
	return !p.instant && time.Since(p.real) < s.config.Processing
}

func (s *Server) absent() (int, any) {
	switch s.config.Absent {
	case "message":
		return http.StatusOK, map[string]any{"message": "Tracking not found"}
	case "empty":
		return http.StatusOK, map[string]any{}
	default:
		return http.StatusNotFound, map[string]any{"message": "not found"}
	}
}

// shaped is the answer about parcels, in the shape that is set. All shapes hold the same facts.
//
// Assumed: the shape of an answer to a query is not shown.
func (s *Server) shaped(found []parcel, now time.Time) any {
	objects := make([]map[string]any, len(found))
	for i, p := range found {
		objects[i] = s.journey(p).object(p.item, now)
		if s.config.QueryShape == "flat" {
			objects[i] = flat(objects[i])
		}
	}
	var one any = objects
	if len(objects) == 1 {
		one = objects[0]
	}
	switch s.config.QueryShape {
	case "flat":
		return one
	case "list":
		return objects
	case "deep":
		return map[string]any{"response": map[string]any{"result": map[string]any{"payload": map[string]any{"tracking": one}}}}
	case "noisy":
		return noisy(one)
	default:
		return map[string]any{"message": "success", "data": one}
	}
}

// flat puts the members of summary and detail beside the others.
func flat(o map[string]any) map[string]any {
	f := map[string]any{}
	for _, v := range o {
		if part, ok := v.(map[string]any); ok {
			maps.Copy(f, part)
		}
	}
	for name, v := range o {
		if _, ok := v.(map[string]any); !ok {
			f[name] = v
		}
	}
	return f
}

// noisy surrounds an answer with what other services put there.
func noisy(one any) map[string]any {
	return map[string]any{
		"status":     200,
		"code":       0,
		"success":    true,
		"message":    "OK",
		"error":      nil,
		"requestId":  "5b1c1f8e-1111-4222-8333-944445555666",
		"request":    map[string]any{"path": pathDetail, "status": "done", "trackingNumber": "0000000000"},
		"pagination": map[string]any{"page": 1, "size": 50, "total": 1},
		"rateLimit":  map[string]any{"limit": 100, "remaining": 99},
		"related":    []any{map[string]any{"trackingNumber": "9999999999", "status": 4, "statusLabel": "OTHER", "latestEvent": "not this one"}},
		"data":       map[string]any{"futureField": map[string]any{"a": []int{1, 2, 3}}, "tracking": one, "carrier": map[string]any{"name": "Some Carrier", "phone": "+1 555 0100"}},
	}
}
