package recall

// Fitting is fitting.
var Fitting = fitting
