// Package shapes is for tests: the forms in which a sandbox answers queries.
package shapes

import "maps"

// Names are the names that [Named] takes, the sandbox's own first.
var Names = []string{"nested", "flat", "list", "deep", "noisy"}

// Named returns the form of that name. All hold the same facts.
//
// Assumed: the shape of an answer to a query is not shown.
func Named(name string) func(found any) any {
	return map[string]func(any) any{
		"flat": func(found any) any {
			if one, ok := found.(map[string]any); ok {
				return flat(one)
			}
			objects, _ := found.([]map[string]any)
			all := make([]any, len(objects))
			for i, o := range objects {
				all[i] = flat(o)
			}
			return all
		},
		"list": func(found any) any {
			if one, ok := found.(map[string]any); ok {
				return []any{one}
			}
			return found
		},
		"deep": func(found any) any {
			return map[string]any{"response": map[string]any{"result": map[string]any{"payload": map[string]any{"tracking": found}}}}
		},
		"noisy": func(found any) any { return noisy(found) },
	}[name]
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
		"request":    map[string]any{"path": "/api/v1/routers/detail", "status": "done", "trackingNumber": "0000000000"},
		"pagination": map[string]any{"page": 1, "size": 50, "total": 1},
		"rateLimit":  map[string]any{"limit": 100, "remaining": 99},
		"related":    []any{map[string]any{"trackingNumber": "9999999999", "status": 4, "statusLabel": "OTHER", "latestEvent": "not this one"}},
		"data":       map[string]any{"futureField": map[string]any{"a": []int{1, 2, 3}}, "tracking": one, "carrier": map[string]any{"name": "Some Carrier", "phone": "+1 555 0100"}},
	}
}
