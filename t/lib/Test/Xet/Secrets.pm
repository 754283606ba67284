package Test::Xet::Secrets;

# Copyright (C) the ngx_http_xet_module authors

# What a test has sent or got that opens something: signatures of URLs and
# tokens; none of it may be in a log of nginx when the test is done.
#
#     note_secrets($text);
#     my @lines = secrets_in($file);
#
# Lines of debug logs, which are nginx's own, do not count.

use warnings;
use strict;

use parent qw/ Exporter /;

our @EXPORT = qw/ note_secrets secrets_in secret_logs /;

my %seen;

# Bodies of files are no texts: only what is short is looked at.

sub note_secrets {
	my ($text) = @_;

	return if length($text) > 1 << 20;

	$seen{$1} = 1 while $text =~ /\bs=([\w-]{43,64})(?![\w-])/g;
	$seen{$1} = 1 while $text =~ /X-Amz-Signature=([0-9a-f]{64})/g;
	$seen{$1} = 1 while $text =~
		/(ey[\w-]{16,}\.[\w-]{16,}\.[\w-]{40,})/g;
	$seen{$1} = 1 while $text =~
		/^Authorization: Basic ([\w+\/]{32,})/mgi;
}

# The words of a line are looked up, so that it does not matter how many secrets
# there are.

sub secrets_in {
	my ($file) = @_;

	my @lines;

	open(my $f, '<', $file) or return;

	while (my $line = <$f>) {
		next if $line =~ /\[debug\]/;

		# of a message of a debug log that has several lines

		next if $file =~ /error/ && $line !~ m!^\d{4}/\d\d/\d\d !;
		next unless grep { $seen{$_} || $seen{s/^hf_//r} }
			$line =~ /([\w.+\/-]{32,})/g;

		push @lines, $line;
	}

	return @lines;
}

# The logs that a configuration names; none of an nginx without the module.

sub secret_logs {
	my ($conf) = @_;

	return unless $conf =~ /^\s*xet_\w+/m;

	my %logs = map { $_ => 1 } grep { -f }
		$conf =~ /\b(?:access|error)_log\s+(\/[^\s;]+)/g;

	return sort keys %logs;
}

1;
