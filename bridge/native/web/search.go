package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// The kinds of search engines.
const (
	// EngineBrave is the API of Brave.
	EngineBrave = "brave"
	// EngineSearXNG is an instance of SearXNG that gives JSON.
	EngineSearXNG = "searxng"
	// EngineTemplate is any other one that answers with JSON.
	EngineTemplate = "template"
)

// BraveURL is the API of Brave.
const BraveURL = "https://api.search.brave.com/res/v1/web/search"

const (
	defaultResults = 5
	maxResults     = 20
	searchTime     = 30 * time.Second
	// maxSnippetBytes bounds title and snippet of a result.
	maxSnippetBytes = 2000
)

// Search says where web:search asks. Zero fields mean the defaults.
type Search struct {
	// Engine is EngineBrave, EngineSearXNG or EngineTemplate. Default EngineBrave.
	Engine string
	// URL is where it is: the address of Brave's API, the one of a SearXNG instance, or a
	// template with {query} and, if it takes one, {limit}. Default BraveURL, for Brave.
	URL string
	// Key is the API key. It stands in X-Subscription-Token for Brave, else in
	// Authorization, behind "Bearer ".
	Key string
	// Via is a proxy through which the engine is asked. Default: none.
	Via *url.URL
}

func (s Search) withDefaults() Search {
	if s.Engine == "" {
		s.Engine = EngineBrave
	}
	if s.Engine == EngineBrave && s.URL == "" {
		s.URL = BraveURL
	}
	return s
}

// lacksKey reports whether nothing can be found, since the engine wants a key.
func (s Search) lacksKey() bool { return s.Engine == EngineBrave && s.Key == "" }

// searchResult is a result of a search.
type searchResult struct{ title, url, snippet string }

func (w *web) search(ctx context.Context, in tools.Input) (tools.Output, error) {
	query, limit := in.String("query", ""), int64(defaultResults)
	for _, name := range []string{"count", "max_results", "limit"} {
		if n, ok := in.Int(name); ok {
			limit = min(max(n, 1), maxResults)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	r, err := w.Search.request(query, limit)
	if err != nil {
		return tools.Output{}, err
	}
	var answer any
	if err := w.endpoint(ctx, in, toolSearch, r, w.Search.Via, &answer); err != nil {
		return tools.Output{}, failure(err)
	}
	results := []any{}
	for _, f := range resultsOf(answer) {
		if int64(len(results)) == limit {
			break
		}
		result := map[string]any{"title": f.title, "url": f.url, "snippet": nil}
		if f.snippet != "" {
			result["snippet"] = f.snippet
		}
		results = append(results, result)
	}
	return tools.Output{Values: map[string]any{"query": query, "results": results, "count": int64(len(results))}}, nil
}

// request is the one for a query.
func (s Search) request(query string, limit int64) (*http.Request, error) {
	address, values := s.URL, url.Values{}
	switch s.Engine {
	case EngineSearXNG:
		if address == "" {
			return nil, tools.Errorf(tools.Failed, "the address of SearXNG is not configured (--search-url)")
		}
		if !strings.HasSuffix(strings.TrimRight(address, "/"), "/search") {
			address = strings.TrimRight(address, "/") + "/search"
		}
		values = url.Values{"q": {query}, "format": {"json"}}
	case EngineTemplate:
		if !strings.Contains(address, "{query}") {
			return nil, tools.Errorf(tools.Failed, "the address of the search engine has no {query} (--search-url)")
		}
		address = strings.NewReplacer("{query}", url.QueryEscape(query), "{limit}", strconv.FormatInt(limit, 10)).Replace(address)
	default:
		if s.lacksKey() {
			return nil, tools.Errorf(tools.Failed, "BRAVE_API_KEY not configured: set it, or use another engine (--search-engine)")
		}
		values = url.Values{"q": {query}, "count": {strconv.FormatInt(limit, 10)}}
	}
	r, err := withQuery(address, values)
	if err != nil {
		return nil, tools.Errorf(tools.Failed, "the address of the search engine is none (--search-url)")
	}
	switch {
	case s.Key == "":
	case s.Engine == EngineBrave:
		r.Header.Set("X-Subscription-Token", s.Key)
	default:
		r.Header.Set("Authorization", "Bearer "+s.Key)
	}
	return r, nil
}

// resultsOf finds the results in the answer of an engine: the first list of objects with an
// address, under the names that engines use.
func resultsOf(answer any) []searchResult {
	list, ok := answer.([]any)
	if !ok {
		object, _ := answer.(map[string]any) // nothing is found in anything else
		for _, name := range []string{"results", "web", "items", "organic", "organic_results", "data", "hits", "value", "webPages"} {
			if inner, ok := object[name]; ok {
				if out := resultsOf(inner); len(out) > 0 {
					return out
				}
			}
		}
		return nil
	}
	var out []searchResult
	for _, item := range list {
		object, _ := item.(map[string]any) // others have no address
		f := searchResult{
			title: first(object, "title", "name"), url: first(object, "url", "link", "href"),
			snippet: first(object, "snippet", "description", "content", "text", "body"),
		}
		if f.url != "" {
			out = append(out, f)
		}
	}
	return out
}

// first is the first text that is there under some names.
func first(object map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := object[name].(string); ok && s != "" {
			return text.Cut(plain(s), maxSnippetBytes, text.Ellipsis)
		}
	}
	return ""
}
