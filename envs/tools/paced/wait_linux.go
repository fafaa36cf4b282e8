package main

import (
	"syscall"
	"time"
)

// sleep waits by the kernel's timers: time.Sleep waits in steps of 1 ms on Linux (golang/go#53824), which sends requests
// late by up to that and some in pairs.
func sleep(wait time.Duration) {
	left := syscall.NsecToTimespec(int64(max(wait, 0)))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
