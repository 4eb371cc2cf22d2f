package inspect

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"
)

// tokenHeader carries the token. No other site can make a browser send it and, unlike a cookie, it is not sent to
// servers at other ports of the host.
const tokenHeader = "Waybill-Token"

// policy lets the page load its own files and connect to its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.beginRequest() {
		setHeaders(w.Header())
		closeConnection(w)
		s.fail(w, &Error{http.StatusServiceUnavailable, "waybill is shutting down", "start it again", "ending"})
		return
	}
	defer s.requests.Done()
	setHeaders(w.Header())
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // set by the connection's last answer; not supported by test recorders
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	if refused := s.refusal(r); refused != nil {
		s.refuse(w, r, refused)
		return
	}
	if strings.HasPrefix(r.URL.Path, APIPrefix+"/") {
		s.serveAPI(w, r)
		return
	}
	body, contentType, ok := readFile(r.URL.Path)
	switch {
	case !ok:
		s.fail(w, &Error{http.StatusNotFound, "there is no page at this path", "open " + s.URL(), "not_found"})
	case r.Method != http.MethodGet:
		s.methodNotAllowed(w, http.MethodGet)
	default:
		s.write(w, http.StatusOK, contentType, body)
	}
}

// refusal says why a request is refused whatever it asks for; nil if it may go on.
func (s *Server) refusal(r *http.Request) *Error {
	if !slices.Contains(s.hosts, strings.ToLower(r.Host)) {
		const message = "this server does not answer for the host of this request"
		return &Error{http.StatusMisdirectedRequest, message, "open the URL that waybill printed", "wrong_host"}
	}
	foreign := slices.ContainsFunc(r.Header.Values("Origin"), func(origin string) bool {
		return !strings.EqualFold(origin, "http://"+r.Host)
	})
	fromElsewhere := slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), func(site string) bool {
		return site != "same-origin" && site != "none"
	})
	if foreign || fromElsewhere && !isNavigation(r) {
		return &Error{http.StatusForbidden, "this request comes from another site", "open the URL that waybill printed, " +
			"in the address bar", "foreign_origin"}
	}
	switch token := r.Header.Get(tokenHeader); {
	case !strings.HasPrefix(r.URL.Path, "/api/"), equal(token, s.token), equal(token, s.o.Token) && token != "":
		return nil
	case token == "":
		return unauthorized("this tab does not have the token of the inspector", "")
	}
	return unauthorized("the token of this tab belongs to an inspector that has ended, or to another one",
		"; --ui-token-file FILE with a fixed --ui-addr keeps open tabs valid when it is started again")
}

func unauthorized(message, hint string) *Error {
	hint = "open the URL that waybill printed when it started" + hint
	return &Error{http.StatusUnauthorized, message, hint, "unauthorized"}
}

// isNavigation reports whether the request follows a link to the page: the page itself has nothing to protect.
func isNavigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// equal compares secrets in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, e *Error) {
	closeConnection(w)
	if strings.HasPrefix(r.URL.Path, "/api/") {
		s.fail(w, e)
		return
	}
	s.write(w, e.Status, "text/plain; charset=utf-8", []byte("waybill: "+e.Message+"\nhint: "+e.Hint+"\n"))
}

// closeConnection makes a connection close after its answer, without waiting for the body.
func closeConnection(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // not supported by test recorders
}

func (s *Server) methodNotAllowed(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	const message = "this path does not take the method of this request"
	s.fail(w, &Error{http.StatusMethodNotAllowed, message, "use " + allowed, "method_not_allowed"})
}
