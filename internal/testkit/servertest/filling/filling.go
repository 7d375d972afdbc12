package filling

import (
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"       // registers its descriptors
	_ "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1" // registers its descriptors
)

// Case is one filled request.
type Case struct {
	// Method is what to call.
	Method protoreflect.MethodDescriptor
	// Field is the path of the filled field, such as `records.tags`.
	Field string
	// Shape is what it is filled with.
	Shape string
	// JSON says that the field holds JSON in protobuf's own types.
	JSON bool
	// First is the message that a stream begins with before this one; nil for
	// none.
	First []byte
	// Body makes the message on the wire.
	Body func() []byte
}

// Name is unique among all requests.
func (r Case) Name() string {
	return string(r.Method.FullName()) + " " + r.Field + " " + r.Shape
}

// Path is the method's name on the wire.
func (r Case) Path() string {
	return "/" + string(r.Method.Parent().FullName()) + "/" + string(r.Method.Name())
}

// Methods returns every method of the services of a package, in the order of
// their names.
func Methods(name protoreflect.FullName) []protoreflect.MethodDescriptor {
	var methods []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(name, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			list := file.Services().Get(i).Methods()
			for k := range list.Len() {
				methods = append(methods, list.Get(k))
			}
		}
		return true
	})
	slices.SortFunc(methods, func(a, b protoreflect.MethodDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return methods
}

// Requests yields all requests of a method, each of at most so many bytes and what
// stands around them.
func Requests(method protoreflect.MethodDescriptor, size int) iter.Seq[Case] {
	return func(yield func(Case) bool) {
		first := firstOf(method.Input())
		for _, p := range pathsOf(method.Input()) {
			for _, s := range shapes(p, size) {
				r := Case{Method: method, Field: p.String(), Shape: s.name, JSON: isJSON(p.last())}
				r.Body = func() []byte { return append(required(method.Input()), s.body()...) }
				if p[0].Name() != "hello" {
					r.First = first
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// firstOf returns the hello that a stream of Attach begins with; nil for other
// requests.
func firstOf(d protoreflect.MessageDescriptor) []byte {
	if d.FullName() != "loombridge.v1.AttachRequest" {
		return nil
	}
	hello := d.Fields().ByName("hello")
	return member(hello, required(hello.Message()))
}

// required returns what a message needs so that it is not refused for what it
// lacks: texts and roles.
func required(d protoreflect.MessageDescriptor) []byte {
	var base []byte
	for _, name := range []protoreflect.Name{"agent_id", "id", "text", "query", "name", "tool_name", "topic", "action", "role"} {
		field := d.Fields().ByName(name)
		switch {
		case field == nil || field.IsList() || field.ContainingOneof() != nil:
		case field.Kind() == protoreflect.StringKind:
			base = append(base, member(field, []byte(agent))...)
		case field.Kind() == protoreflect.EnumKind:
			base = protowire.AppendTag(base, field.Number(), protowire.VarintType)
			base = protowire.AppendVarint(base, 1)
		}
	}
	return base
}

// resultFormText is RESULT_FORM_TEXT, as the value of ResultUpload.form.
var resultFormText = []byte{1 << 3, 3}

// requiredOf returns what the message of a field needs: the step of an upload also says
// that its result follows.
func requiredOf(field protoreflect.FieldDescriptor) []byte {
	base := required(field.Message())
	if field.FullName() == "loombridge.v1.UploadStepRequest.step" {
		base = append(base, member(field.Message().Fields().ByName("output_upload"), resultFormText)...)
	}
	return base
}

// agent is who calls, and the value of every other text that is required.
const agent = "filler"

// path leads from a message to a field within it. All but the last are messages.
type path []protoreflect.FieldDescriptor

func (p path) String() string {
	names := make([]string, len(p))
	for i, field := range p {
		names[i] = string(field.Name())
	}
	return strings.Join(names, ".")
}

// last is the field that is filled.
func (p path) last() protoreflect.FieldDescriptor { return p[len(p)-1] }

// pathsOf returns the paths to every field of a message that can be filled:
// repeated fields, maps, JSON values and JSON texts.
func pathsOf(d protoreflect.MessageDescriptor) []path {
	var paths []path
	var visit func(d protoreflect.MessageDescriptor, above path)
	visit = func(d protoreflect.MessageDescriptor, above path) {
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			at := append(slices.Clip(slices.Clone(above)), field)
			if field.IsList() || field.IsMap() || isJSON(field) || isJSONText(field) {
				paths = append(paths, at)
			}
			inner := field.Message()
			if inner == nil || field.IsMap() || isJSON(field) || slices.ContainsFunc(above, func(f protoreflect.FieldDescriptor) bool { return f.Message() == inner }) {
				continue
			}
			visit(inner, at)
		}
	}
	visit(d, nil)
	return paths
}

// isJSON reports whether a field holds JSON as protobuf's own types, which nest.
func isJSON(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsMap() &&
		slices.Contains([]protoreflect.FullName{"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}, field.Message().FullName())
}

// isJSONText reports whether a field holds JSON as text.
func isJSONText(field protoreflect.FieldDescriptor) bool {
	return field.Kind() == protoreflect.StringKind && strings.HasSuffix(string(field.Name()), "_json")
}
