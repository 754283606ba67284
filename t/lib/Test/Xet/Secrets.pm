package Test::Xet::Secrets;

# Copyright (C) the ngx_http_xet_module authors

# Records the secrets that a test sent or received: signatures of URLs, and
# tokens.  No secret may be in a log of nginx at the end of the test.
#
#     note_secrets($text);
#     my @lines = secrets_in($file);
#
# Lines of the debug log are nginx's own and are not searched.

use warnings;
use strict;

use parent qw/ Exporter /;

our @EXPORT = qw/ note_secrets secrets_in secret_logs /;

my %seen;

# Records the secrets of a text.  Bodies of files are not text, so long bodies
# are not searched.

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

# Returns the lines of a file that contain a recorded secret.  Looks up the
# words of each line in a hash, so the number of secrets does not matter.

sub secrets_in {
	my ($file) = @_;

	my @lines;

	open(my $f, '<', $file) or return;

	while (my $line = <$f>) {
		next if $line =~ /\[debug\]/;

		# in a debug log, such lines continue a message

		next if $file =~ /error/ && $line !~ m!^\d{4}/\d\d/\d\d !;
		next unless grep { $seen{$_} || $seen{s/^hf_//r} }
			$line =~ /([\w.+\/-]{32,})/g;

		push @lines, $line;
	}

	return @lines;
}

# Returns the logs that a configuration names; none for an nginx without the
# module.

sub secret_logs {
	my ($conf) = @_;

	return unless $conf =~ /^\s*xet_\w+/m;

	my %logs = map { $_ => 1 } grep { -f }
		$conf =~ /\b(?:access|error)_log\s+(\/[^\s;]+)/g;

	return sort keys %logs;
}

1;
