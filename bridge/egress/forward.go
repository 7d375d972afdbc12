package egress

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// targetOf is the target of a request's URL; scheme is http or https.
func targetOf(scheme, hostport string) (destination, error) {
	t := destination{tls: scheme == "https", port: 80}
	if t.tls {
		t.port = 443
	}
	if scheme != "http" && scheme != "https" {
		return t, fmt.Errorf("scheme %q is not http or https", scheme)
	}
	return t.parse(hostport)
}

// parse reads host, or host:port.
func (t destination) parse(hostport string) (destination, error) {
	host := hostport
	if h, port, err := net.SplitHostPort(hostport); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is not a port", port)
		}
		host, t.port = h, int(n)
	}
	var err error
	t.host, err = canonical(host)
	return t, err
}

// clean is a path in its shortest form.
func clean(p string) string {
	c := path.Clean(p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}

// odd reports whether servers may read a path otherwise than this package does.
func odd(r *http.Request) bool {
	p := r.URL.Path
	raw := strings.ToLower(r.URL.EscapedPath())
	return !strings.HasPrefix(p, "/") || p != clean(p) || !utf8.ValidString(p) || strings.ContainsRune(p, '\\') || strings.ContainsFunc(p, unicode.IsControl) || strings.Contains(p, "/..;") || strings.Contains(p, "/.;") ||
		strings.Contains(raw, "%2f") || strings.Contains(raw, "%5c") || strings.Contains(raw, "%25")
}

// allow returns the target's rules that also allow the request.
func (s *Session) allow(t destination, rules []Rule, r *http.Request) ([]Rule, error) {
	var out []Rule
	for _, rule := range rules {
		if len(rule.Paths) > 0 && odd(r) {
			continue
		}
		if rule.takes(r.Method, r.URL.Path) {
			out = append(out, rule)
		}
	}
	if len(out) == 0 {
		return nil, s.deny(t, fmt.Sprintf("%s %s is not among the methods and paths that are allowed there", r.Method, r.URL.Path))
	}
	return out, nil
}

// roundTrip sends a request to a target, checks it, and takes secrets out of the answer. The
// entry ends when the body is closed, or with the error.
func (s *Session) roundTrip(r *http.Request, t destination) (_ *http.Response, err error) {
	e, err := s.begin(t, r.Method, r.URL.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.end(err)
		}
	}()
	if host, err := t.parse(r.Host); r.Host != "" && (err != nil || host.host != t.host || host.port != t.port && strings.Contains(r.Host, ":")) {
		return nil, s.deny(t, fmt.Sprintf("the request names another host, %q", r.Host))
	}
	rules, err := s.decide(r.Context(), t)
	if err == nil {
		rules, err = s.allow(t, rules, r)
	}
	if err != nil {
		return nil, err
	}
	out := s.outgoing(r, t)
	var secrets []sealed
	if t.tls {
		if secrets = s.secretsFor(rules); len(secrets) > 0 {
			inject(out.Header, secrets)
			// A part of an answer, or one in other bytes, could hide an echo.
			for _, name := range []string{"Range", "If-Range", "Accept-Encoding"} {
				out.Header.Del(name)
			}
			out.Header.Set("Accept-Encoding", "identity")
		}
	}
	body := &countedBody{body: out.Body, entry: e}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = body
	}
	resp, err := s.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if hopByHop(name) {
			resp.Header.Del(name)
		}
	}
	mask := maskOf(secrets)
	if err := decoded(resp, mask != nil); err != nil {
		_ = resp.Body.Close() // the answer is not used
		return nil, err
	}
	resp.Request = r // as it was asked for
	maskHeader(resp.Header, mask)
	resp.Trailer = nil
	resp.Body = &answerBody{ReadCloser: maskedBody{mask.Reader(resp.Body), resp.Body}, entry: e}
	return resp, nil
}

// outgoing is the request as it is sent to a target.
func (s *Session) outgoing(r *http.Request, t destination) *http.Request {
	out := r.Clone(r.Context())
	out.RequestURI, out.Close, out.Trailer = "", false, nil
	out.URL.Scheme = "http"
	if t.tls {
		out.URL.Scheme = "https"
	}
	out.URL.Host, out.URL.User = t.String(), nil
	out.Host = strings.TrimSuffix(t.String(), map[bool]string{true: ":443", false: ":80"}[t.tls])
	for _, list := range out.Header.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			out.Header.Del(strings.TrimSpace(name))
		}
	}
	for name := range out.Header {
		if hopByHop(name) {
			out.Header.Del(name)
		}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // none, rather than Go's
	}
	return out
}

// decoded takes the encoding off an answer that is searched for secrets, or refuses it.
func decoded(resp *http.Response, searched bool) error {
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if !searched || coding == "" || coding == "identity" {
		return nil
	}
	if coding != "gzip" && coding != "x-gzip" {
		return fmt.Errorf("the host answered in the encoding %q, which can't be searched for secrets", coding)
	}
	resp.Body = &gunzip{from: resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	return nil
}

// gunzip is a body without its encoding.
type gunzip struct {
	from   io.ReadCloser
	reader *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.reader == nil {
		r, err := gzip.NewReader(g.from)
		if err != nil {
			return 0, err
		}
		g.reader = r
	}
	return g.reader.Read(p)
}

func (g *gunzip) Close() error { return g.from.Close() }

// countedBody counts what is sent.
type countedBody struct {
	body  io.ReadCloser
	entry *auditEntry
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.entry.sent.Add(int64(n))
	return n, err
}

func (b *countedBody) Close() error { return b.body.Close() }

// answerBody counts the received bytes, and ends the entry.
type answerBody struct {
	io.ReadCloser
	entry *auditEntry
	once  sync.Once
	err   error
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.entry.received.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.entry.end(b.err) })
	return err
}

// RoundTrip sends a request of a tool in the server: under the same rules as a process, its
// redirects each by itself. It makes a Session an http.RoundTripper.
func (s *Session) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := targetOf(r.URL.Scheme, r.URL.Host)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper closes it always
		}
		return nil, err
	}
	resp, err := s.roundTrip(r, t)
	if err != nil && r.Body != nil {
		_ = r.Body.Close() // closing twice is harmless for bodies of requests
	}
	return resp, err
}

var _ http.RoundTripper = (*Session)(nil)
