package rest

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loom-bridge/loom-bridge/server/admission"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// mediaTypeError: the body is not what a request may be written in.
type mediaTypeError struct{ given string }

func (e *mediaTypeError) Error() string {
	return fmt.Sprintf("must be application/json, not %q", validate.Cut(e.given, maxShown))
}

// maxShown bounds what a refusal repeats of a request.
const maxShown = 128

// decode makes the request of a call. What the path gives counts, whatever the body says.
func decode(r *http.Request, b binding, path map[string]string) (proto.Message, error) {
	message := b.in.New().Interface()
	if err := decodeBody(r, b, message); err != nil {
		return nil, err
	}
	if err := decodeQuery(r, b, message); err != nil {
		return nil, err
	}
	for _, name := range b.params {
		value, err := url.PathUnescape(path[name])
		switch {
		case err != nil || !utf8.ValidString(value):
			return nil, validate.Refuse(name, "is not percent-encoded UTF-8 in the path")
		case value == "":
			return nil, validate.Refuse(name, "is empty in the path")
		}
		if err := runtime.PopulateFieldFromPath(message, name, value); err != nil {
			return nil, validate.Refuse(name, err.Error())
		}
	}
	return message, nil
}

func decodeBody(r *http.Request, b binding, message proto.Message) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return validate.Refuse("body", "can't be read")
	}
	if !b.body && len(body) > 0 {
		return validate.Refuse("body", "is not taken by "+r.Method+"; give fields in the query")
	}
	if len(body) == 0 {
		return nil
	}
	given := r.Header.Get("Content-Type")
	if media, params, err := mime.ParseMediaType(given); err != nil || media != "application/json" || !utf8Charset(params["charset"]) {
		return &mediaTypeError{given}
	}
	if excess, found := admission.CheckJSON(b.in.Descriptor(), body); found {
		return validate.Refuse(excess.Field, excess.Problem)
	}
	return unmarshal(body, message, "body")
}

func utf8Charset(charset string) bool { return charset == "" || strings.EqualFold(charset, "utf-8") }

// unmarshal reads protobuf's JSON; field is where it stands in the request.
func unmarshal(text []byte, message proto.Message, field string) error {
	err := protojson.UnmarshalOptions{RecursionLimit: admission.MaxDepth}.Unmarshal(text, message)
	if err == nil {
		return nil
	}
	// The library begins its text with its name and one of two kinds of space.
	_, problem, _ := strings.Cut(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return validate.Refuse(field, "is not JSON of "+string(message.ProtoReflect().Descriptor().Name())+": "+problem)
}

// decodeQuery reads the parameters of a request without a body. A message is JSON.
func decodeQuery(r *http.Request, b binding, message proto.Message) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return validate.Refuse("query", "can't be read: "+err.Error())
	}
	for key, values := range query {
		f := fieldOf(b.in.Descriptor(), key)
		switch {
		case b.body:
			return validate.Refuse(validate.Cut(key, maxShown), "stands in the query; this call takes its fields from the body")
		case f == nil:
			return validate.Refuse(validate.Cut(key, maxShown), "is no field of "+string(b.in.Descriptor().Name()))
		case slices.Contains(b.params, string(f.Name())):
			return validate.Refuse(string(f.Name()), "is given by the path")
		case slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }):
			return validate.Refuse(string(f.Name()), "holds text that is not UTF-8")
		case !isJSON(f):
			continue
		}
		if err := setJSON(message.ProtoReflect(), f, values); err != nil {
			return err
		}
		delete(query, key)
	}
	if err := runtime.PopulateQueryParameters(message, query, utilities.NewDoubleArray(nil)); err != nil {
		return misread(b, query, err)
	}
	return nil
}

// misread names the parameter that can't be read as its field.
func misread(b binding, query url.Values, err error) error {
	for key, values := range query {
		f := fieldOf(b.in.Descriptor(), key)
		if runtime.PopulateQueryParameters(b.in.New().Interface(), url.Values{key: values}, utilities.NewDoubleArray(nil)) == nil {
			continue
		}
		if !f.IsList() && !f.IsMap() && len(values) > 1 {
			return validate.Refuse(string(f.Name()), "stands there more than once")
		}
		if wanted := form(f); wanted != "" {
			return validate.Refuse(string(f.Name()), "must be "+wanted)
		}
	}
	return validate.Refuse("query", "can't be read: "+err.Error())
}

// form is how one value of a field is written in the query; empty for what says it in its error.
func form(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		names := make([]string, f.Enum().Values().Len())
		for i := range names {
			names[i] = string(f.Enum().Values().Get(i).Name())
		}
		return "one of " + strings.Join(names, ", ")
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return "a number, whole and of 32 bits"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "a number, whole and of 64 bits"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "a number, whole, of 32 bits and not negative"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "a number, whole, of 64 bits and not negative"
	case protoreflect.BytesKind:
		return "base64"
	case protoreflect.MessageKind:
		switch f.Message().FullName() {
		case "google.protobuf.Timestamp":
			return "a time such as 2026-01-31T09:30:00Z"
		case "google.protobuf.Duration":
			return "a duration such as 1.5s"
		}
	}
	return ""
}

func fieldOf(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByTextName(name); f != nil {
		return f
	}
	return d.Fields().ByJSONName(name)
}

// isJSON reports whether a parameter is a message of ours.
func isJSON(f protoreflect.FieldDescriptor) bool {
	return f.Message() != nil && !f.IsMap() && f.Message().ParentFile().Package() == f.ParentFile().Package()
}

// setJSON sets a field from its parameters.
func setJSON(m protoreflect.Message, f protoreflect.FieldDescriptor, values []string) error {
	if !f.IsList() && len(values) > 1 {
		return validate.Refuse(string(f.Name()), "stands there more than once")
	}
	for _, value := range values {
		inner := typeOf(f.Message()).New()
		if err := unmarshal([]byte(value), inner.Interface(), string(f.Name())); err != nil {
			return err
		}
		if !f.IsList() {
			m.Set(f, protoreflect.ValueOfMessage(inner))
			continue
		}
		m.Mutable(f).List().Append(protoreflect.ValueOfMessage(inner))
	}
	return nil
}
