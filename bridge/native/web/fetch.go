package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/net/http/httpguts"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// methods are the methods that web:fetch may use.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// ownHeaders are headers that a caller can't choose.
var ownHeaders = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer", "Accept-Encoding", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive"}

// fetchedPage is what came of fetching a URL.
type fetchedPage struct {
	url         *url.URL // after redirects
	status      int
	contentType string // without parameters
	body        []byte
	truncated   bool
	given       string // the content type as the host gave it
}

func (w *web) fetch(ctx context.Context, in tools.Input) (tools.Output, error) {
	r, err := request(in)
	if err != nil {
		return tools.Output{}, err
	}
	doc, err := w.get(ctx, in, r)
	if err != nil {
		return tools.Output{}, err
	}
	out := tools.Output{Values: map[string]any{"url": doc.url.String(), "status": int64(doc.status), "content_type": doc.contentType}}
	switch {
	case doc.page() && !in.Bool("raw"):
		p := doc.read()
		out.Values["title"], out.Values["content"], out.Values["links"] = p.title, p.text, p.linkList()
		doc.truncated = doc.truncated || p.truncated
	case doc.textual():
		content := doc.decoded()
		cut := text.Head(content, MaxTextBytes)
		out.Values["content"] = cut
		doc.truncated = doc.truncated || len(cut) < len(content)
	default:
		out.BodyKey, out.Body, out.BodySize = "content", io.NopCloser(bytes.NewReader(doc.body)), int64(len(doc.body))
	}
	if doc.truncated {
		out.Values["truncated"] = true
	}
	return out, nil
}

func (w *web) navigate(ctx context.Context, in tools.Input) (tools.Output, error) {
	u, err := address(in)
	if err != nil {
		return tools.Output{}, err
	}
	r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {"text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.5"}}}
	doc, err := w.get(ctx, in, r)
	if err != nil {
		return tools.Output{}, err
	}
	p := page{links: []link{}}
	switch {
	case doc.page():
		p = doc.read()
	case doc.textual():
		content := doc.decoded()
		p.text = text.Head(content, MaxTextBytes)
		p.truncated = len(p.text) < len(content)
	default:
		return tools.Output{}, tools.Errorf(tools.Failed, "%s is no page but %s: use web:fetch", doc.url, doc.contentType)
	}
	values := map[string]any{"url": doc.url.String(), "status": int64(doc.status), "title": p.title, "text": p.text, "links": p.linkList()}
	if doc.truncated || p.truncated {
		values["truncated"] = true
	}
	return tools.Output{Values: values}, nil
}

// onWeb is a policy whose every public host is every one on the ports of the web: what listens
// elsewhere was not made for strangers' pages to be asked of it. A rule names other ports.
func onWeb(p egress.Policy) egress.Policy {
	if p.Open {
		p.Open, p.Rules = false, append(slices.Clone(p.Rules), egress.Rule{Host: "*"})
	}
	return p
}

// get fetches a URL under the rules of the caller.
func (w *web) get(ctx context.Context, in tools.Input, r *http.Request) (fetchedPage, error) {
	client, end, err := w.client(in, onWeb(egress.ForCall(in, w.Hosts)))
	if err != nil {
		return fetchedPage{}, failure(err)
	}
	defer end()
	client.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) >= MaxRedirects {
			return tools.Errorf(tools.Failed, "more than %d redirects", MaxRedirects)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", userAgent)
	}
	resp, err := client.Do(r.WithContext(ctx))
	if err != nil {
		return fetchedPage{}, failure(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPageBytes+1))
	if err != nil {
		return fetchedPage{}, failure(err)
	}
	doc := fetchedPage{url: resp.Request.URL, status: resp.StatusCode, given: resp.Header.Get("Content-Type"), body: body}
	if len(body) > maxPageBytes {
		doc.body, doc.truncated = body[:maxPageBytes], true
	}
	if doc.given == "" {
		doc.given = http.DetectContentType(doc.body)
	}
	if doc.contentType, _, err = mime.ParseMediaType(doc.given); err != nil {
		doc.contentType = strings.ToLower(strings.TrimSpace(strings.SplitN(doc.given, ";", 2)[0]))
	}
	return doc, nil
}

// address is the URL that a call names. A name alone is one of https.
func address(in tools.Input) (*url.URL, error) {
	given := strings.TrimSpace(in.String("url", ""))
	if len(given) > MaxURLBytes {
		return nil, refuse("url", fmt.Sprintf("is longer than %d bytes", MaxURLBytes))
	}
	if !strings.Contains(given, "://") {
		given = "https://" + given
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" {
		return nil, refuse("url", "is not an address, such as https://example.com/page")
	}
	if u.Scheme = strings.ToLower(u.Scheme); u.Scheme != "http" && u.Scheme != "https" {
		return nil, refuse("url", "is not one of http or https")
	}
	if u.User != nil {
		return nil, refuse("url", "has a user in it; use the header Authorization")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// request is what a call of web:fetch asks for.
func request(in tools.Input) (*http.Request, error) {
	u, err := address(in)
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: strings.ToUpper(in.String("method", http.MethodGet)), URL: u, Header: http.Header{}}
	if !slices.Contains(methods, r.Method) {
		return nil, refuse("method", "is not "+strings.Join(methods, ", "))
	}
	headers, _ := in.Args["headers"].(map[string]any) // the schema says so
	if len(headers) > MaxHeaders {
		return nil, refuse("headers", fmt.Sprintf("has more than %d", MaxHeaders))
	}
	for name, value := range headers {
		v, ok := value.(string)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
			return nil, refuse("headers."+text.Cut(name, maxErrorBytes, text.Ellipsis), "is not a header with a text")
		}
		if !slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)) {
			r.Header.Set(name, v)
		}
	}
	if body := in.String("body", ""); body != "" {
		if len(body) > MaxBodyBytes {
			return nil, refuse("body", fmt.Sprintf("is longer than %d bytes", MaxBodyBytes))
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	}
	return r, nil
}

// page reports whether it is one of HTML.
func (d *fetchedPage) page() bool {
	return d.contentType == "text/html" || d.contentType == "application/xhtml+xml"
}

// textual reports whether it can be shown as text.
func (d *fetchedPage) textual() bool {
	t := d.contentType
	if strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") {
		return true
	}
	switch t {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml",
		"application/x-ndjson", "application/sql", "application/x-sh", "application/x-www-form-urlencoded":
		return true
	}
	return len(d.body) == 0
}

// decoded is the body as UTF-8. The character set is that of the header or of the document.
func (d *fetchedPage) decoded() string {
	if !d.page() && !strings.Contains(strings.ToLower(d.given), "charset") && utf8.Valid(d.body) {
		return strings.TrimPrefix(string(d.body), "\uFEFF")
	}
	r, err := charset.NewReader(bytes.NewReader(d.body), d.given)
	if err != nil {
		return text.Valid(string(d.body))
	}
	content, err := io.ReadAll(io.LimitReader(r, 4*int64(len(d.body))+utf8.UTFMax))
	if err != nil {
		return text.Valid(string(d.body))
	}
	return text.Valid(strings.TrimPrefix(string(content), "\uFEFF"))
}

func (d *fetchedPage) read() page { return readPage(d.decoded(), d.url) }
