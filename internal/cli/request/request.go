// Package request has the command that sends an arbitrary request to the service.
package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/term"
)

// maxBody is the maximum size of a request body, in bytes.
const maxBody = 32 << 20

type options struct {
	Method, Path string
	Fields       []string // NAME=VALUE, VALUE is a text
	Values       []string // NAME=VALUE, VALUE is JSON
	Input        string   // file with the body, empty for none
	Include      bool
	Yes          bool
	BypassStore  bool
}

// New returns the command api.
func New(f *command.Factory) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "api [METHOD] PATH",
		Short: "Send a request of your own to the service",
		Long: `api sends one request with your API key and prints the body of the response. Use it
for what waybill has no command for. PATH begins after base_url and may have a
query; it never names a host. METHOD is GET if you omit it.

-f adds a text, -F a JSON value (true, 3, null, [1,2]): to the query of GET, HEAD and
DELETE, else to a JSON object as the body. --input sends a file as the body.

Methods other than GET and HEAD can change data of the service: on a terminal, api
asks first; elsewhere it needs --yes. The paths that create trackings are refused
without --bypass-store: only "waybill create" records rows, so that none is sent
twice.

Redirects are not followed, nothing is repeated, and a body of more than 32 MiB is an
error. The response is printed also if its status is an error. What it holds is
recorded for "waybill observed" if there is a store already: api creates none.

Exit status: 0 for 2xx, 3 for 404, 4 for 401 and 403, 5 for other refusals, 7 if it is
not known what a request did that may change data, 11 for 5xx, 408, 429 and no
connection.`,
		Example: command.Example("waybill api /api/v1/routers/detail -f referId=ORD-1001",
			"waybill api GET '/api/v1/routers/detail?referId=ORD-1001' --include",
			"waybill api POST /PATH -f name=value -F active=true --yes", "waybill api /PATH --jq '.data[].code'"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return command.Usagef("such as waybill api /api/v1/routers/detail -f referId=R",
					"%s given; expected [METHOD] PATH", command.Plural(len(args), "argument"))
			}
			return nil
		},
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Method, o.Path = http.MethodGet, args[len(args)-1]
			if len(args) == 2 {
				o.Method = strings.ToUpper(args[0])
			}
			return run(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.Fields, "field", "f", nil, "add a text `NAME=VALUE`; may be repeated")
	flags.StringArrayVarP(&o.Values, "typed-field", "F", nil, "add a JSON value `NAME=JSON`; may be repeated")
	flags.StringVar(&o.Input, "input", "", "send `FILE` as the body; - is standard input")
	flags.BoolVarP(&o.Include, "include", "i", false, "print the status and the headers too")
	command.YesFlag(flags, &o.Yes)
	flags.BoolVar(&o.BypassStore, "bypass-store", false, "create trackings that waybill does not record")
	return cmd
}

func run(ctx context.Context, c *command.Call, o options) error {
	if c.Out.IsCSV() {
		return command.Usagef("use -o json or --jq", "api does not support %s", strings.ToUpper(string(c.Out.Format())))
	}
	if err := o.check(); err != nil {
		return err
	}
	query, body, err := o.content(c.IO)
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	r, err := client.NewRequest(o.Method, o.Path, query, body)
	if err != nil {
		return command.Usagef("such as /api/v1/routers/detail; base_url names the host", "%w", err)
	}
	if err := o.permit(ctx, c, client.Host(), r); err != nil {
		return err
	}
	if _, err := c.StoreIfAny(ctx); err != nil { // the response is recorded there
		return err
	}
	res, err := send(ctx, c, client, r)
	if res.Status != 0 {
		err = errors.Join(o.print(c, res), statusError(err))
	}
	return err
}

func (o options) check() error {
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	switch {
	case !slices.Contains(methods, o.Method):
		return command.Usagef("such as waybill api POST /PATH", "the method must be %s", command.Or(methods))
	case o.Path == "":
		const hint = "such as waybill api /api/v1/routers/detail; an unset shell variable may be the cause"
		return command.Usagef(hint, "PATH is empty")
	case o.Input != "" && len(o.Fields)+len(o.Values) > 0:
		return command.Usagef("choose one of them", "--input and -f or -F exclude each other")
	case o.Input != "" && o.inQuery():
		const hint = "name the method before the path, such as POST"
		return command.Usagef(hint, "%s has no body, so --input can't be sent", o.Method)
	}
	return nil
}

func (o options) inQuery() bool { return o.safe() || o.Method == http.MethodDelete }

func (o options) safe() bool { return o.Method == http.MethodGet || o.Method == http.MethodHead }

func (o options) content(streams *term.IO) (url.Values, []byte, error) {
	if o.Input != "" {
		body, err := readInput(streams, o.Input)
		return nil, body, err
	}
	if len(o.Fields)+len(o.Values) == 0 {
		return nil, nil, nil
	}
	query, object := url.Values{}, map[string]any{}
	for i, field := range slices.Concat(o.Fields, o.Values) {
		typed := i >= len(o.Fields)
		name, value, ok := strings.Cut(field, "=")
		if !ok || name == "" {
			return nil, nil, command.Usagef("such as -f referId=ORD-1001", "field %s is not NAME=VALUE", command.Quoted(field))
		}
		if typed && !json.Valid([]byte(value)) {
			return nil, nil, command.Usagef("use -f for texts",
				"field %s: %s is not JSON", command.Quoted(name), command.Quoted(value))
		}
		if _, ok := object[name]; ok && !o.inQuery() {
			return nil, nil, command.Usagef("send a body with --input", "field %s is given twice", command.Quoted(name))
		}
		query.Add(name, value)
		object[name] = value
		if typed {
			object[name] = json.RawMessage(value)
		}
	}
	if o.inQuery() {
		return query, nil, nil
	}
	body, err := json.Marshal(object)
	return nil, body, err
}

func readInput(streams *term.IO, path string) ([]byte, error) {
	in := streams.In
	if path != command.StdinName {
		f, err := os.Open(path)
		if err != nil {
			return nil, command.Usagef("", "--input: %w", err)
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--input: %w", err)
	case len(body) > maxBody:
		return nil, command.Usagef("", "--input: %s is larger than 32 MiB", command.Quoted(path))
	}
	return body, nil
}

// permit returns an error for a create, which the store would not record, and asks before requests that change data.
func (o options) permit(ctx context.Context, c *command.Call, host string, r api.Request) error {
	create := r.Operation == api.OpCreateSync || r.Operation == api.OpCreateAsync
	switch {
	case o.safe():
		return nil
	case create && !o.BypassStore:
		return command.Usagef("use `waybill create`; --bypass-store sends it all the same",
			"%s creates trackings that waybill would not record: `waybill create` could send them again", o.Path)
	case o.Yes:
		return nil
	case !c.IO.Interactive():
		return command.Usagef("add --yes to send it", "%s can change data of the service", o.Method)
	}
	yes, err := c.IO.Confirm(ctx, "Send %s %s to %s?", o.Method, o.Path, host)
	if err == nil && !yes {
		err = &command.ExitError{Code: command.Failed, Err: errors.New("not sent")}
	}
	return err
}

func send(ctx context.Context, c *command.Call, client *api.Client, r api.Request) (api.Response, error) {
	pass, err := c.Gate.Enter(ctx)
	if err != nil {
		return api.Response{}, err
	}
	defer pass.Release()
	res, err := client.Send(ctx, r)
	if errors.Is(err, api.ErrUnanswered) {
		err = &command.ExitError{Code: command.Unknown, Err: err, Hint: "find out by a query before you send it again"}
	}
	return res, err
}

// statusError gives a 404 the exit status not_found. Unlike for a query, the hint is about the path.
func statusError(err error) error {
	if refused, ok := errors.AsType[*api.StatusError](err); ok && refused.Status == http.StatusNotFound {
		return &command.ExitError{Code: command.NotFound, Err: err, Hint: "check the path and its query"}
	}
	return err
}

type includedJSON struct {
	Status  int                 `json:"status"`
	Headers map[string][]string `json:"headers"` // secrets masked
	Body    json.RawMessage     `json:"body"`    // a text if it is not JSON
}

func (o options) print(c *command.Call, res api.Response) error {
	key, err := c.Key()
	if err != nil {
		return err
	}
	mask := redact.New(key)
	if body := mask.Bytes(res.Body); !bytes.Equal(body, res.Body) {
		c.IO.Warning("the response repeats the API key, which is masked here")
		res.Body = body
	}
	header := map[string][]string{}
	for name, values := range res.Header {
		for _, v := range values {
			header[name] = append(header[name], redact.Header(name, mask.String(v)))
		}
	}
	if c.Out.Machine() {
		return o.printJSON(c.Out, res, header)
	}
	if o.Include {
		if err := printHead(c.Out, res, header); err != nil {
			return err
		}
	}
	if c.Out.ForPeople() && len(res.Body) > 0 {
		return c.Out.Raw(res.Body)
	}
	return c.Out.Bytes(res.Body)
}

func printHead(out *command.Output, res api.Response, header map[string][]string) error {
	err := out.Line("HTTP/1.1 %d %s", res.Status, http.StatusText(res.Status))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, v := range header[name] {
			err = errors.Join(err, out.Line("%s: %s", name, v))
		}
	}
	return errors.Join(err, out.Line(""))
}

func (o options) printJSON(out *command.Output, res api.Response, header map[string][]string) error {
	body := json.RawMessage(res.Body)
	if !res.JSON {
		body, _ = json.Marshal(string(res.Body)) //nolint:errchkjson // a string can't fail
	}
	if !o.Include {
		return out.Object(body)
	}
	return out.Object(includedJSON{Status: res.Status, Headers: header, Body: body})
}
