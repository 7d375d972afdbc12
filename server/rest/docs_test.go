package rest

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	protos "github.com/loom-bridge/loom-bridge/proto"
)

// The description has every way to make a call and no other, and a text for each field; the
// page shows them all, and needs nothing from elsewhere.
func TestDescription(t *testing.T) {
	var d struct {
		OpenAPI    string
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(protos.OpenAPI, &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("version %q: %v", d.OpenAPI, err)
	}
	all, err := bindings(protos.REST)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	Docs(answer, httptest.NewRequest(http.MethodGet, "/docs", nil))
	page := answer.Body.String()
	described := 0
	for _, verbs := range d.Paths {
		described += len(verbs)
	}
	if described != len(all) {
		t.Errorf("%d ways are described, there are %d", described, len(all))
	}
	for _, b := range all {
		o, ok := d.Paths[b.path][strings.ToLower(b.verb)]
		switch {
		case !ok || o.Description == "" || !strings.HasSuffix(b.method, "/"+strings.Split(o.ID, "By")[0]):
			t.Errorf("%s %s is described as %+v", b.verb, b.path, o)
		case b.streaming != o.Streams() || b.body != (o.Body() != nil):
			t.Errorf("%s %s: streams %v, body %v", b.verb, b.path, o.Streams(), o.Body())
		case !strings.Contains(page, `id="`+o.ID+`"`):
			t.Errorf("the page lacks %s", o.ID)
		}
	}
	for name, s := range d.Components.Schemas {
		for field, p := range s.Properties {
			if p.Description == "" && name != "Status" {
				t.Errorf("%s.%s has no text", name, field)
			}
		}
		if !strings.Contains(page, `id="schema-`+name+`"`) {
			t.Errorf("the page lacks %s", name)
		}
	}
	for _, foreign := range []string{"<script", "//cdn", "style=", "src="} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

// A command of the page has what its call needs in the query, as JSON where it is a message.
func TestCommandsHaveTheirQueries(t *testing.T) {
	answer := httptest.NewRecorder()
	Docs(answer, httptest.NewRequest(http.MethodGet, "/docs", nil))
	page := html.UnescapeString(answer.Body.String())
	for _, want := range []string{
		`/v1/events:subscribe' -G --data-urlencode 'topics={"topic":"topic"}'`,
		`/v1/memories:get' -G --data-urlencode 'id=id'`,
		`/v1/memories/{id}'` + "\n", `/v1/grants' -G --data-urlencode 'space_id=space_id'` + "\n",
	} {
		if !strings.Contains(strings.ReplaceAll(page, "<", "\n<"), want) {
			t.Errorf("no command has %q", want)
		}
	}
}
