package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	protos "github.com/loom-bridge/loom-bridge/proto"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Every call but those with several messages from the client has a rule, and no two calls
// share a method and a path.
func TestRulesAreComplete(t *testing.T) {
	all, err := bindings(protos.REST)
	if err != nil {
		t.Fatal(err)
	}
	reached, ways := map[string]bool{}, map[string]string{}
	for _, b := range all {
		reached[b.method] = true
		way := b.verb + " " + b.path
		if other, taken := ways[way]; taken {
			t.Errorf("%s reaches %s and %s", way, other, b.method)
		}
		ways[way] = b.method
	}
	var left []string
	for _, s := range []grpc.ServiceDesc{
		loombridgev1.AdminService_ServiceDesc, loombridgev1.AgentService_ServiceDesc, loombridgev1.BlobService_ServiceDesc, loombridgev1.BridgeService_ServiceDesc,
		loombridgev1.EventService_ServiceDesc, loombridgev1.MemoryService_ServiceDesc, loombridgev1.PromptService_ServiceDesc, loombridgev1.SessionService_ServiceDesc,
		loombridgev1.SharingService_ServiceDesc, loombridgev1.ToolService_ServiceDesc, loombridgev1.TransferService_ServiceDesc,
	} {
		for _, m := range s.Methods {
			if !reached["/"+s.ServiceName+"/"+m.MethodName] {
				left = append(left, m.MethodName)
			}
		}
		for _, m := range s.Streams {
			if !reached["/"+s.ServiceName+"/"+m.StreamName] {
				left = append(left, m.StreamName)
			}
		}
	}
	if want := []string{"Attach", "UploadStep", "Import"}; !slices.Equal(left, want) {
		t.Errorf("%v have no path, want %v", left, want)
	}
}

// A file that does not fit the protos is refused, and the error names what is wrong.
func TestRulesThatDoNotFit(t *testing.T) {
	file := string(protos.REST)
	save := `"post": "/v1/memories", "body": "*"`
	line := file[strings.LastIndex(file[:strings.Index(file, save)], "{"):]
	line = line[:strings.Index(line, "\n")]
	for name, test := range map[string]struct{ from, to, want string }{
		"missing":        {line, "", "MemorySave has no rule"},
		"twice":          {line, line + line, "has a rule already"},
		"unknown":        {"MemorySave\"", "MemorySaved\"", "MemorySaved: is no call"},
		"of a stream":    {"BridgeService.MemorySave\"", "BridgeService.Attach\"", "Attach: is no call"},
		"body of a get":  {`"get": "/v1/status"`, `"get": "/v1/status", "body": "*"`, "GetStatus: the body"},
		"part of a body": {save, `"post": "/v1/memories", "body": "text"`, "MemorySave: the body"},
		"no such field":  {"/v1/steps/{step_id}", "/v1/steps/{step}", `"step" is no text`},
		"no text":        {"/v1/steps/{step_id}", "/v1/steps/{page_size}", `"page_size" is no text`},
		"unknown key":    {save, save + `, "put": "/x"`, "unknown field"},
		"no JSON":        {"{", "", "rules"},
	} {
		_, err := bindings([]byte(strings.Replace(file, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// What has a verb after a colon is compared with a path before what would take it for an id.
func TestOrder(t *testing.T) {
	all, err := bindings(protos.REST)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, b := range ordered(all) {
		paths = append(paths, fmt.Sprint(strings.Contains(b.path, ":")))
	}
	if !slices.IsSortedFunc(paths, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("paths with and without a verb are mixed: %v", paths)
	}
}
