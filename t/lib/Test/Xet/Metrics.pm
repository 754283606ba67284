package Test::Xet::Metrics;

# Copyright (C) the ngx_http_xet_module authors

# Reads the metrics of a server the way Prometheus does.
#
#     my $m = metrics($t);
#
#     $m->{'xet_requests_total{route="health",class="2xx"}'}

use warnings;
use strict;

use parent 'Exporter';

our @EXPORT = qw/ metrics parse_metrics /;

# Returns { name and labels => value }.  Takes the options of get().

sub metrics {
	my ($t, %o) = @_;

	my $r = $t->get($o{uri} || '/metrics', {}, %o);

	die "no metrics: $r->{status}\n" unless $r->{status} == 200;

	return parse_metrics($r->{body});
}

sub parse_metrics {
	my ($text) = @_;

	my %values;

	for my $line (split(/\n/, $text)) {
		next if $line =~ /^#/;

		my ($name, $value) = $line =~ /^(\w+(?:\{[^}]*\})?) (\S+)$/
			or die "what is that: $line\n";

		die "twice: $name\n" if exists $values{$name};

		$values{$name} = $value;
	}

	return \%values;
}

1;
