package rest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	protos "github.com/loom-bridge/loom-bridge/proto"
)

//go:embed docs.html
var page string

//go:embed docs.css
var style []byte

// OpenAPI answers with the description of all calls.
func OpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(protos.OpenAPI) // who does not read it has left
}

// Docs answers with the page about all calls.
func Docs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = w.Write(rendered())
}

// Style answers with the style of the page.
func Style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(style)
}

// schema is what the page shows of a schema.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"`
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Items       *schema            `json:"items"`
	Content     *schema            `json:"contentSchema"`
	Properties  map[string]*schema `json:"properties"`
	Enum        []string           `json:"enum"`
}

// Name is the name of the schema that one refers to; empty for none.
func (s *schema) Name() string {
	if s == nil || s.Ref == "" {
		return ""
	}
	return path.Base(s.Ref)
}

// Target is the name of the schema that a value, or each of its items, has.
func (s *schema) Target() string {
	for ; s != nil; s = s.Items {
		if s.Ref != "" {
			return s.Name()
		}
		if s.Content != nil {
			return s.Content.Name()
		}
	}
	return ""
}

// Kind is the type as a reader wants it.
func (s *schema) Kind() string {
	switch {
	case s.Items != nil:
		return "list of " + s.Items.Kind()
	case s.Ref != "" || s.Content != nil:
		return s.Target()
	case s.Format != "":
		return s.Format
	case s.Type == nil:
		return "JSON"
	}
	return fmt.Sprint(s.Type)
}

// operation is what the page shows of a call.
type operation struct {
	ID          string   `json:"operationId"`
	Tags        []string `json:"tags"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Parameters  []struct {
		Name, In, Description string
		Schema                *schema
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct{ Schema *schema }
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema *schema }
	} `json:"responses"`

	Verb, Path string
}

// Body is the schema of the request's body, nil for none.
func (o operation) Body() *schema { return o.RequestBody.Content["application/json"].Schema }

// Answer is the schema of the answer, or of each message of a stream.
func (o operation) Answer() *schema {
	content := o.Responses["200"].Content
	if lines, ok := content["application/x-ndjson"]; ok {
		return lines.Schema.Properties["result"]
	}
	return content["application/json"].Schema
}

// Streams reports whether the call answers with a stream.
func (o operation) Streams() bool {
	_, ok := o.Responses["200"].Content[eventStream]
	return ok
}

// needed finds in the text of a field that a request has to give it.
var needed = regexp.MustCompile(`\bRequired(?: without| unless|[.,])`)

// eitherOf finds the group of fields one of which a request has to give.
var eitherOf = regexp.MustCompile(`\bExactly one of (.+?) (?:must be|is) given\.`)

// schemas are the schemas of the description, by name.
type schemas map[string]*schema

// Curl is a call in a shell, with its required fields, header and path.
func (s schemas) Curl(o operation) (string, error) {
	line := "curl -H 'Loom-Agent-Id: me' 'http://127.0.0.1:50080" + o.Path + "'"
	if o.Verb != "GET" {
		line = strings.Replace(line, "curl", "curl -X "+o.Verb, 1)
	}
	if o.Body() == nil {
		return s.withQuery(line, o)
	}
	var given []string
	for _, p := range o.Parameters {
		given = append(given, jsonName(p.Name))
	}
	body, err := json.Marshal(s.example("", o.Body(), given...))
	return line + " -H 'Content-Type: application/json' -d '" + string(body) + "'", err
}

// withQuery adds to a call what it needs in its query.
func (s schemas) withQuery(line string, o operation) (string, error) {
	groups, in := map[string]bool{"": true}, ""
	for _, p := range o.Parameters {
		if p.In == "path" {
			groups[group(&schema{Description: p.Description})] = true
		}
	}
	for _, p := range o.Parameters {
		g := group(&schema{Description: p.Description})
		if p.In != "query" || p.Name == "agent_id" || groups[g] && !strings.Contains(p.Description, "Required.") {
			continue
		}
		groups[g] = true
		value, of := p.Name, p.Schema
		if of.Items != nil { // it is repeated
			of = of.Items
		}
		if of.Content != nil {
			text, err := json.Marshal(s.example(p.Name, of.Content))
			if err != nil {
				return "", err
			}
			value = string(text)
		}
		in += " --data-urlencode '" + p.Name + "=" + value + "'"
	}
	if in != "" {
		line += " -G" + in
	}
	return line, nil
}

func jsonName(field string) string {
	first, rest, _ := strings.Cut(field, "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return first
}

// example is a value of a field, with what it needs but for the agent and what is given elsewhere.
func (s schemas) example(field string, of *schema, given ...string) any {
	if of.Ref != "" {
		of = s[of.Name()]
	}
	switch {
	case of.Items != nil:
		return []any{s.example(field, of.Items)}
	case len(of.Enum) > 1:
		return of.Enum[1] // the first is that none was given
	case of.Type == "string":
		return field
	case of.Type == "integer":
		return 1
	}
	object, groups := map[string]any{}, map[string]bool{}
	for _, name := range given {
		if inner := of.Properties[name]; inner != nil {
			groups[group(inner)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		inner := of.Properties[name]
		wanted := name != "agentId" && needed.MatchString(inner.Description)
		if g := group(inner); g != "" {
			wanted = !groups[g]
			groups[g] = true
		}
		if wanted && !slices.Contains(given, name) {
			object[name] = s.example(name, inner)
		}
	}
	return object
}

// group is that of which one field has to be given; empty for none.
func group(field *schema) string {
	if found := eitherOf.FindStringSubmatch(field.Description); found != nil {
		return found[1]
	}
	return ""
}

// rendered is the page, which is made once.
var rendered = sync.OnceValue(func() []byte {
	var all struct {
		Info       struct{ Title, Description string }
		Tags       []struct{ Name, Description string }
		Paths      map[string]map[string]operation
		Components struct{ Schemas schemas }
	}
	if err := json.Unmarshal(protos.OpenAPI, &all); err != nil {
		panic(err) // a test reads it
	}
	byTag := map[string][]operation{}
	for path, verbs := range all.Paths {
		for verb, o := range verbs {
			o.Verb, o.Path = strings.ToUpper(verb), path
			byTag[o.Tags[0]] = append(byTag[o.Tags[0]], o)
		}
	}
	for _, operations := range byTag {
		slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.Path+a.Verb, b.Path+b.Verb) })
	}
	paragraphs := func(text string) []string { return strings.Split(text, "\n\n") }
	var out bytes.Buffer
	t := template.Must(template.New("docs").Funcs(template.FuncMap{"paragraphs": paragraphs, "curl": all.Components.Schemas.Curl}).Parse(page))
	if err := t.Execute(&out, map[string]any{"All": all, "ByTag": byTag}); err != nil {
		panic(err) // so does one make the page
	}
	return out.Bytes()
})
