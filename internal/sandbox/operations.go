package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// create answers both create operations.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
// Interface: Endpoints, 2. Batch create (asynchronous, v2).
func (s *Server) create(w http.ResponseWriter, r *http.Request, op operation) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", s.config.MaxBody))
		return
	}
	if err != nil || !s.admit(w, r, op, http.MethodPost) {
		return
	}
	limit := tracking.MaxAsyncBatch
	if op == opCreateV1 {
		limit = tracking.MaxSyncBatch
	}
	items, problem := s.readItems(body, limit)
	if problem != nil {
		refuse(w, problem.status, problem.message)
		return
	}
	good, results := s.split(items)
	store := func() { s.state.store(good, op) }
	if s.injectFault(w, r, op, store, map[string]any{"message": "accepted", "count": len(good)}) {
		return
	}
	store()
	s.created(w, op, good, results)
}

type rejection struct {
	status  int
	message string
}

func (s *Server) readItems(body []byte, limit int) ([]tracking.Item, *rejection) {
	var request struct {
		Data []struct {
			ReferID  *string `json:"referId"`
			Number   *string `json:"rawTrackingNumber"`
			Metadata *struct {
				CarrierCode string `json:"carrierCode"`
			} `json:"metadata"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, &rejection{http.StatusBadRequest, "the body is not a create request: " + err.Error()}
	}
	if n := len(request.Data); n < 1 || n > limit {
		return nil, &rejection{http.StatusUnprocessableEntity, fmt.Sprintf("data has %d items; "+
			"1 to %d are allowed", n, limit)}
	}
	items := make([]tracking.Item, len(request.Data))
	for i, d := range request.Data {
		if d.ReferID == nil || d.Number == nil || *d.ReferID == "" || *d.Number == "" {
			return nil, &rejection{http.StatusUnprocessableEntity, fmt.Sprintf("data[%d]: "+
				"referId and rawTrackingNumber are required", i)}
		}
		items[i] = tracking.Item{ReferID: *d.ReferID, Number: *d.Number}
		if d.Metadata != nil {
			items[i].CarrierCode = d.Metadata.CarrierCode
		}
	}
	if i := slices.IndexFunc(items, s.rejects); i >= 0 && s.config.CreateShape != "items" {
		return nil, &rejection{http.StatusUnprocessableEntity, fmt.Sprintf("data[%d]: "+
			"%q is not accepted", i, items[i].Number)}
	}
	return items, nil
}

func (s *Server) rejects(it tracking.Item) bool {
	return s.config.Reject != "" && (s.reject.MatchString(it.ReferID) || s.reject.MatchString(it.Number))
}

func (s *Server) split(items []tracking.Item) (good []tracking.Item, results []map[string]any) {
	for _, it := range items {
		result := map[string]any{"referId": it.ReferID, "rawTrackingNumber": it.Number, "success": true, "error": nil}
		if s.rejects(it) {
			result["success"], result["error"] = false, map[string]any{"message": "this tracking is not accepted"}
		} else {
			good = append(good, it)
		}
		if s.config.CreateShape == "items" {
			results = append(results, result)
		}
	}
	return good, results
}

// created answers an accepted create. In v1 the tracking data is next to the results.
func (s *Server) created(w http.ResponseWriter, op operation, good []tracking.Item, results []map[string]any) {
	if s.config.CreateShape == "empty" {
		w.WriteHeader(http.StatusOK)
		return
	}
	reply := map[string]any{"message": "accepted"}
	if results != nil {
		reply["items"] = results
	}
	if op == opCreateV1 {
		s.state.mu.Lock()
		now := s.state.now()
		list := make([]map[string]any, 0, len(good))
		for _, it := range good {
			list = append(list, s.journey(s.state.parcels[s.state.byKey[it.Key()]]).object(it, now))
		}
		s.state.mu.Unlock()
		reply["message"], reply["data"] = "created", list
	}
	answer(w, http.StatusOK, reply)
}

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
	found, now := s.state.find(refer, number)
	if len(found) == 0 {
		return s.absent()
	}
	found = slices.DeleteFunc(found, s.processing)
	if len(found) == 0 {
		return http.StatusOK, map[string]any{"message": "Processing"}
	}
	return http.StatusOK, s.shaped(found, now)
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

// shaped is the answer about parcels.
//
// Assumed: the shape of an answer to a query is not shown.
func (s *Server) shaped(found []parcel, now time.Time) any {
	objects := make([]map[string]any, len(found))
	for i, p := range found {
		objects[i] = s.journey(p).object(p.item, now)
	}
	var one any = objects
	if len(objects) == 1 {
		one = objects[0]
	}
	if s.config.Shape != nil {
		return s.config.Shape(one)
	}
	return map[string]any{"message": "success", "data": one}
}
