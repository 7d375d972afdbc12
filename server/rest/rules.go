package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// rule is a google.api.HttpRule.
type rule struct {
	Selector   string `json:"selector"`
	Get        string `json:"get"`
	Post       string `json:"post"`
	Patch      string `json:"patch"`
	Delete     string `json:"delete"`
	Body       string `json:"body"`
	Additional []rule `json:"additional_bindings"`
}

// call is a method of the native API.
type call struct {
	method    string // as gRPC names it
	in, out   protoreflect.MessageType
	streaming bool
}

// binding is one way to reach a call.
type binding struct {
	call
	verb, path string
	// params are the fields that the path gives.
	params []string
	// body says that the body gives all other fields; otherwise the query does.
	body bool
}

// bindings reads the rules and checks them: each call that a client makes with one message has
// one, and what a path gives are texts of the request.
func bindings(file []byte) ([]binding, error) {
	var config struct {
		Type    string `json:"type"`
		Version int    `json:"config_version"`
		HTTP    struct {
			Rules []rule `json:"rules"`
		} `json:"http"`
	}
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&config); err != nil {
		return nil, fmt.Errorf("rest: rules: %w", err)
	}
	missing, all := calls(), []binding(nil)
	for _, r := range config.HTTP.Rules {
		c, ok := missing[r.Selector]
		if !ok {
			return nil, fmt.Errorf("rest: %s: is no call with one message from the client, or has a rule already", r.Selector)
		}
		delete(missing, r.Selector)
		for _, way := range append([]rule{r}, r.Additional...) {
			b, err := bind(c, way)
			if err != nil {
				return nil, fmt.Errorf("rest: %s: %w", r.Selector, err)
			}
			all = append(all, b)
		}
	}
	for selector := range missing {
		return nil, fmt.Errorf("rest: %s has no rule", selector)
	}
	return all, nil
}

// calls are the methods that take one message, by full name.
func calls() map[string]call {
	all := map[string]call{}
	protoregistry.GlobalFiles.RangeFilesByPackage(loombridgev1.File_loombridge_v1_bridge_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if m := methods.Get(j); !m.IsStreamingClient() {
					all[string(m.FullName())] = call{fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()), typeOf(m.Input()), typeOf(m.Output()), m.IsStreamingServer()}
				}
			}
		}
		return true
	})
	return all
}

func typeOf(d protoreflect.MessageDescriptor) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err) // generated code registers both
	}
	return t
}

func bind(c call, r rule) (binding, error) {
	b := binding{call: c, path: cmp.Or(r.Get, r.Post, r.Patch, r.Delete), body: r.Body != ""}
	for verb, path := range map[string]string{http.MethodGet: r.Get, http.MethodPost: r.Post, http.MethodPatch: r.Patch, http.MethodDelete: r.Delete} {
		if path != "" {
			b.verb = verb
		}
	}
	if r.Body != "" && r.Body != "*" || b.body == (b.verb == http.MethodGet || b.verb == http.MethodDelete) {
		return binding{}, fmt.Errorf("the body of POST and PATCH is *, others have none")
	}
	for part := range strings.SplitSeq(b.path, "{") {
		name, _, ok := strings.Cut(part, "}")
		if !ok {
			continue
		}
		f := c.in.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
			return binding{}, fmt.Errorf("%s: %q is no text of the request", b.path, name)
		}
		b.params = append(b.params, name)
	}
	return b, nil
}

// ordered are the bindings in the order in which a path is compared with them: those with a
// verb after a colon first, which an id without one would match as well.
func ordered(all []binding) []binding {
	var verbs, plain []binding
	for _, b := range all {
		if strings.Contains(b.path, ":") {
			verbs = append(verbs, b)
		} else {
			plain = append(plain, b)
		}
	}
	return append(verbs, plain...)
}
