"""Reports: what a model says, and what it cost, as one HTML page or as figures."""

from privfield.reporting.report import write_report as write_report
