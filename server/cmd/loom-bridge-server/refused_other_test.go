//go:build !linux || !amd64

package main

// becomeMachine does nothing where there are no other machines.
func becomeMachine() {}
