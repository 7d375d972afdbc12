// Package storedtest compares the stored form of values with golden bytes and with their schema in
// proto/store/v1.
package storedtest

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var write = flag.Bool("write-stored", false, "write golden bytes that are missing")

// Format is how values of one type are stored.
type Format[T any] struct {
	// Name distinguishes two formats of one message; empty for the first.
	Name string
	// Message is an empty message of the schema.
	Message proto.Message
	// Rich changes a value whose fields are all filled where a codec wants others; nil for none.
	Rich func(*T)
	// Apart are fields of the schema, such as Child.result, that the rich value has not.
	Apart []string
	// Encode makes the stored form, and Decode reads it.
	Encode func(T) []byte
	Decode func([]byte) (T, error)
}

// Check compares the stored form of an empty and of a rich value with the golden bytes in
// testdata/stored, a file for each message, and checks that Decode reads all of it, that the
// schema knows each of its fields, and that it has each field of the schema.
func Check[T any](t *testing.T, f Format[T]) {
	t.Helper()
	name := string(f.Message.ProtoReflect().Descriptor().Name()) + f.Name
	t.Run(name, func(t *testing.T) {
		var empty, rich T
		new(filler).fill(reflect.ValueOf(&rich).Elem())
		if f.Rich != nil {
			f.Rich(&rich)
		}
		lines := []string{hex.EncodeToString(f.Encode(empty)), hex.EncodeToString(f.Encode(rich))}
		golden := readGolden(t, name, lines)
		for i, line := range golden {
			if lines[i] != line {
				t.Errorf("value %d is stored as\n%s, not as\n%s", i, lines[i], line)
			}
		}
		value, err := hex.DecodeString(golden[1])
		if err != nil {
			t.Fatal(err)
		}
		read, err := f.Decode(value)
		if err != nil {
			t.Fatal(err)
		}
		if again := f.Encode(read); !bytes.Equal(again, value) {
			t.Errorf("what was read is stored as\n%x, not as\n%x", again, value)
		}
		checkSchema(t, f.Message, value, f.Apart)
	})
}

func readGolden(t *testing.T, name string, lines []string) []string {
	t.Helper()
	path := filepath.Join("testdata", "stored", name)
	if *write {
		if _, err := os.Stat(path); err != nil {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(golden) != len(lines) {
		t.Fatalf("%s has %d lines", path, len(golden))
	}
	return golden
}

// checkSchema reports fields of a stored value that the schema does not know, and fields of
// the schema that the value lacks.
func checkSchema(t *testing.T, message proto.Message, value []byte, apart []string) {
	t.Helper()
	m := message.ProtoReflect().New()
	if err := proto.Unmarshal(value, m.Interface()); err != nil {
		t.Fatal(err)
	}
	left := make(map[string]bool)
	for _, name := range apart {
		left[name] = true
	}
	seen := make(map[protoreflect.FullName]bool)
	var walk func(protoreflect.Message)
	walk = func(m protoreflect.Message) {
		if unknown := m.GetUnknown(); len(unknown) > 0 {
			t.Errorf("%s: the schema lacks the fields of %x", m.Descriptor().Name(), unknown)
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			seen[f.FullName()] = true
			switch {
			case f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					walk(v.List().Get(i).Message())
				}
			default:
				walk(v.Message())
			}
			return true
		})
	}
	walk(m)
	types := make(map[protoreflect.FullName]bool)
	var missing func(protoreflect.MessageDescriptor)
	missing = func(d protoreflect.MessageDescriptor) {
		types[d.FullName()] = true
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			name := fmt.Sprint(d.Name(), ".", f.Name())
			if seen[f.FullName()] == left[name] {
				t.Errorf("%s: in the value %t, apart %t", name, seen[f.FullName()], left[name])
			}
			if inner := f.Message(); inner != nil && seen[f.FullName()] && !types[inner.FullName()] {
				missing(inner)
			}
		}
	}
	missing(m.Descriptor())
}

// filler fills values with numbers and texts that differ.
type filler struct{ last int }

func (f *filler) fill(v reflect.Value) {
	if v.CanAddr() && !v.CanSet() { // a field that is not exported
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	f.last++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(1e15 + int64(f.last)).UTC()))
		return
	case time.Duration:
		v.Set(reflect.ValueOf(time.Duration(f.last) * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Uint8:
		v.Set(reflect.ValueOf(1).Convert(v.Type())) // of most enumerations the first value
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.Set(reflect.ValueOf(f.last).Convert(v.Type()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.last) + .5)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %03d", f.last))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.Set(reflect.ValueOf(fmt.Appendf(nil, "bytes %d", f.last)).Convert(v.Type()))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	}
}
