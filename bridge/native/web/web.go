package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Defaults and limits.
const (
	// maxPageBytes bounds the bytes that are read of a page.
	maxPageBytes = 8 << 20
	// fetchTime bounds one fetch, its redirects included.
	fetchTime = 30 * time.Second
	// MaxTextBytes bounds the text that is given of a page.
	MaxTextBytes = 1 << 20
	// MaxLinks bounds the links that are given of a page.
	MaxLinks = 200
	// MaxRedirects bounds the redirects that are followed.
	MaxRedirects = 10
	// MaxURLBytes, MaxHeaders and MaxBodyBytes bound a request.
	MaxURLBytes  = 8 << 10
	MaxHeaders   = 50
	MaxBodyBytes = 1 << 20
	// maxAnswerBytes bounds the answer of an endpoint.
	maxAnswerBytes = 8 << 20
	// maxErrorBytes bounds what an error repeats of an answer.
	maxErrorBytes = 500
)

// Options of the tools. Gate is required; zero fields mean the defaults.
type Options struct {
	// Gate is the way to networks.
	Gate *egress.Gate
	// Hosts is what web:fetch and browser:navigate may reach where the profile of a call has
	// no network; a mode that has one says it itself.
	Hosts egress.Policy

	Search  Search
	Weather Weather
	Model   Model
}

// web holds what the tools share. It is safe for concurrent use.
type web struct{ Options }

// Register adds the tools to a registry. An error leaves those before it there.
func Register(r *tools.Registry, o Options) error {
	w := &web{o.withDefaults()}
	for _, t := range w.tools() {
		if err := r.Add(t.Descriptor, t.run); err != nil {
			return fmt.Errorf("web: register: %w", err)
		}
	}
	// The name that loom-py's research application knows.
	if err := r.Alias("web-search", toolSearch); err != nil {
		return fmt.Errorf("web: register: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Search, o.Weather, o.Model = o.Search.withDefaults(), o.Weather.withDefaults(), o.Model.withDefaults()
	return o
}

type tool struct {
	tools.Descriptor
	run tools.Func
}

// The names of the tools.
const (
	toolSearch   = "web:search"
	toolFetch    = "web:fetch"
	toolNavigate = "browser:navigate"
	toolWeather  = "weather:get"
	toolGenerate = "llm:generate"
)

func (w *web) tools() []tool {
	schema := func(text string) json.RawMessage { return json.RawMessage(text) }
	return []tool{
		{tools.Descriptor{
			Name: toolSearch, Description: "Search the web. Gives titles, URLs and snippets.", Schema: schema(searchSchema),
			Level: tools.LevelFunction, Category: "search", ResultKind: "search", CLIEquivalents: []string{"curl"},
			ByName: w.Search.lacksKey(), // it says then what is missing
		}, w.search},
		{tools.Descriptor{
			Name: toolFetch, Description: "Fetch a URL: a web page as readable text with its links, JSON and other text as it is, anything else as bytes. Other methods than GET may change something there.", Schema: schema(fetchSchema),
			Level: tools.LevelFunction, Category: "web", ResultKind: "text", Mutates: true, CLIEquivalents: []string{"curl", "wget"},
		}, w.fetch},
		{tools.Descriptor{
			Name: toolNavigate, Description: "Open a web page and read it: title, readable text and links. Scripts of the page are not run.", Schema: schema(navigateSchema),
			Level: tools.LevelFunction, Category: "web", ResultKind: "text",
		}, w.navigate},
		{tools.Descriptor{
			Name: toolWeather, Description: "Tell the weather at a place now.", Schema: schema(weatherSchema),
			Level: tools.LevelFunction, Category: "web", ResultKind: "json",
		}, w.weather},
		{tools.Descriptor{
			Name: toolGenerate, Description: "Ask a language model for a text.", Schema: schema(generateSchema),
			Level: tools.LevelShell, Category: "model", ResultKind: "text",
		}, w.generate},
	}
}

// The schemas of the tools' arguments.
const (
	searchSchema = `{"type":"object","properties":{
"query":{"type":"string","minLength":1,"maxLength":2000,"description":"What to search for"},
"limit":{"type":"integer","minimum":1,"description":"How many results (default 5, at most 20)"},
"max_results":{"type":"integer","minimum":1,"description":"Same as limit"},
"count":{"type":"integer","minimum":1,"description":"Same as limit"}},
"required":["query"]}`
	fetchSchema = `{"type":"object","properties":{
"url":{"type":"string","minLength":1,"description":"Address, http or https"},
"method":{"type":"string","description":"GET (default), HEAD, POST, PUT, PATCH, DELETE or OPTIONS"},
"headers":{"type":"object","description":"Headers of the request, texts by name"},
"body":{"type":"string","description":"Body of the request"},
"raw":{"type":"boolean","description":"Give a page as its HTML, not as readable text (default false)"}},
"required":["url"]}`
	navigateSchema = `{"type":"object","properties":{
"url":{"type":"string","minLength":1,"description":"Address of the page"}},
"required":["url"]}`
	weatherSchema = `{"type":"object","properties":{
"location":{"type":"string","minLength":1,"maxLength":500,"description":"Name of a place, such as Tokyo"}},
"required":["location"]}`
	generateSchema = `{"type":"object","properties":{
"input":{"type":"string","description":"What to ask"},
"bundle":{"type":"object","description":"The prompt in parts, in place of input","properties":{
"system":{"type":"string"},"instructions":{"type":"string"},"context_docs":{"type":"array"},"history":{"type":"array"},"tools_json_schema":{}}},
"budget":{"type":"object","properties":{
"max_input_tokens":{"type":"integer","minimum":1,"description":"Default 2048"},
"max_output_tokens":{"type":"integer","minimum":1,"description":"Default 512"}}}},
"required":["input"]}`
)

// client is one for the requests of a call. The function ends it.
func (w *web) client(in tools.Input, p egress.Policy) (*http.Client, func(), error) {
	session, err := w.Gate.Session(egress.CallerOf(in), p)
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: session}, func() { _ = session.Close() }, nil
}

// endpoint asks an endpoint of the operator's, and decodes its JSON into answer. The error
// for an answer that is not JSON has status and body.
func (w *web) endpoint(ctx context.Context, in tools.Input, name string, r *http.Request, via *url.URL, answer any) error {
	policy, err := egress.Endpoint(r.URL, via)
	if err != nil {
		return tools.Errorf(tools.Failed, "%s: %v", name, err)
	}
	client, end, err := w.client(in, policy)
	if err != nil {
		return failure(err)
	}
	defer end()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	resp, err := client.Do(r.WithContext(ctx))
	if err != nil {
		return failure(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return failure(err)
	case len(body) > maxAnswerBytes:
		return tools.Errorf(tools.TooLarge, "%s answered with more than %d bytes", r.URL.Host, maxAnswerBytes)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &statusError{resp.StatusCode, text.Cut(text.Valid(string(body)), maxErrorBytes, text.Ellipsis)}
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return tools.Errorf(tools.Failed, "the answer of %s is not as expected: %v", r.URL.Host, err)
	}
	return nil
}

// userAgent is how the tools call themselves.
const userAgent = "loom-bridge/1.0"

// statusError is an answer with a status that is not one of success.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP error %d: %s", e.status, e.body) }

// failure says for the model why a request failed.
func failure(err error) error {
	if _, ok := errors.AsType[*tools.Error](err); ok {
		return err
	}
	if denied, ok := errors.AsType[*egress.DeniedError](err); ok {
		return &tools.Error{Code: tools.PermissionDenied, Message: denied.Text, Cause: err}
	}
	var status *statusError
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err // the URL may hold a key
	}
	switch {
	case errors.As(err, &status):
		return &tools.Error{Code: tools.Failed, Message: status.Error(), Cause: err}
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return &tools.Error{Code: tools.Timeout, Message: "the host did not answer in time", Cause: err}
	case errors.Is(err, egress.ErrLimit):
		return &tools.Error{Code: tools.TooLarge, Message: cause.Error(), Cause: err}
	}
	return &tools.Error{Code: tools.Failed, Message: "HTTP request failed: " + cause.Error(), Cause: err}
}

func refuse(argument, problem string) *tools.ArgumentsError {
	return &tools.ArgumentsError{Violations: []tools.Violation{{Path: argument, Problem: problem}}}
}

// withQuery is an address with values added to its query, escaped.
func withQuery(address string, values url.Values) (*http.Request, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	for name, v := range values {
		q[name] = v
	}
	u.RawQuery = q.Encode()
	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}, nil
}

// plain is text without the marks of HTML that endpoints put into it.
func plain(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	return strings.TrimSpace(textOf(s))
}
