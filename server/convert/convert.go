package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// jsonOf writes a Value as JSON text: keys sorted, whole numbers without a
// fraction. Numbers that JSON lacks break the rule of field.
func jsonOf(field string, v *structpb.Value) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plainOf(v)); err != nil {
		return nil, validate.Refuse(field, "holds a number that JSON does not have")
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// plainOf is Value.AsInterface, except that it leaves infinite numbers what
// they are instead of making them text.
func plainOf(v *structpb.Value) any {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		return kind.NumberValue
	case *structpb.Value_StructValue:
		members := make(map[string]any, len(kind.StructValue.GetFields()))
		for key, member := range kind.StructValue.GetFields() {
			members[key] = plainOf(member)
		}
		return members
	case *structpb.Value_ListValue:
		items := make([]any, len(kind.ListValue.GetValues()))
		for i, item := range kind.ListValue.GetValues() {
			items[i] = plainOf(item)
		}
		return items
	}
	return v.AsInterface()
}

// valueOf reads JSON text into a Value. Numbers become the nearest double. Text that
// nests deeper than text.MaxDepth is an error.
func valueOf(document json.RawMessage) (*structpb.Value, error) {
	if len(document) == 0 {
		return structpb.NewNullValue(), nil
	}
	plain, err := text.DecodeAll(document)
	if err != nil {
		return nil, err
	}
	return protoValue(plain)
}

// protoValue is what text.DecodeAll decodes as a Value.
func protoValue(v any) (value *structpb.Value, err error) {
	switch v := v.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case bool:
		return structpb.NewBoolValue(v), nil
	case json.Number:
		return structpb.NewNumberValue(double(string(v))), nil
	case string:
		return structpb.NewStringValue(v), nil
	case map[string]any:
		fields := make(map[string]*structpb.Value, len(v))
		for key, member := range v {
			if fields[key], err = protoValue(member); err != nil {
				return nil, err
			}
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields}), nil
	case []any:
		items := make([]*structpb.Value, len(v))
		for i, item := range v {
			if items[i], err = protoValue(item); err != nil {
				return nil, err
			}
		}
		return structpb.NewListValue(&structpb.ListValue{Values: items}), nil
	}
	return nil, errTooDeep
}

// errTooDeep: JSON can't travel as protobuf's own types.
var errTooDeep = errors.New("convert: JSON is nested too deep")

// structOf reads a JSON object into a Struct; nil for empty text.
func structOf(text json.RawMessage) (*structpb.Struct, error) {
	if len(text) == 0 {
		return nil, nil
	}
	value, err := valueOf(text)
	if err != nil {
		return nil, err
	}
	if value.GetStructValue() == nil {
		return nil, errors.New("server: stored JSON is not an object")
	}
	return value.GetStructValue(), nil
}

// double is the nearest double that JSON can write: what lies beyond the
// largest one becomes the largest one.
func double(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64)
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}

const (
	// maxPleasantDepth bounds how deep JSON nests that travels as protobuf's own
	// types: each level takes three of theirs, and clients stop at 100.
	maxPleasantDepth = 24
	// maxPleasantBytes bounds its size, because it may grow tenfold on the way.
	maxPleasantBytes = 256 << 10
)

// PleasantValue is JSON as a Value, unless exact text was asked for or is all
// that clients can take.
func PleasantValue(given json.RawMessage, asText bool) (*structpb.Value, bool) {
	if asText || len(given) > maxPleasantBytes || text.ShapeOf(given).Depth > maxPleasantDepth {
		return nil, false
	}
	value, err := valueOf(given)
	return value, err == nil
}

// pleasantStruct is the same for an object.
func pleasantStruct(text json.RawMessage, asText bool) (*structpb.Struct, bool) {
	value, ok := PleasantValue(text, asText)
	if !ok || value.GetStructValue() == nil {
		return nil, false
	}
	return value.GetStructValue(), true
}

// timeOf is zero for an unset timestamp.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// Timestamp is unset for a zero time.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// spanOf is zero for an unset duration.
func spanOf(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

// Reason is the reason of a server's error, such as RECORD_EXISTS; empty without one.
func Reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// The enums of the API have the numbers of the domain's or, where the first of those is the
// default, the numbers behind them. Those of the domain that are texts have the same names.

// shifted is the domain's value of an enum whose numbers are one higher.
func shifted[D ~uint8, E ~int32](e E) D { return D(max(e, 1) - 1) }

// enumOf is the value of an enum by its name in the domain, such as three_phase; the unspecified
// one for a name that it does not have.
func enumOf[E protoreflect.Enum](name string) (e E) {
	if v := e.Descriptor().Values().ByName(protoreflect.Name(prefixOf(e) + strings.ToUpper(name))); v != nil {
		e = e.Type().New(v.Number()).(E)
	}
	return e
}

// nameOf is the inverse of enumOf; empty for the unspecified value and for unknown ones.
func nameOf(e protoreflect.Enum) string {
	v := e.Descriptor().Values().ByNumber(e.Number())
	if v == nil || v.Number() == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefixOf(e)))
}

// prefixOf begins the names of all values of an enum.
func prefixOf(e protoreflect.Enum) string {
	return strings.TrimSuffix(string(e.Descriptor().Values().Get(0).Name()), "UNSPECIFIED")
}

// Int32 keeps counts within their field.
func Int32(n int) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, n))) }

// utf8Text makes text from outside, such as a file name, fit for protobuf.
func utf8Text(s string) string { return text.Valid(s) }
