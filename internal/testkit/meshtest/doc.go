// Package meshtest is the suite that every mesh.Transport must pass.
package meshtest
