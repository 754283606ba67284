package Test::Xet::Refusal;

# Copyright (C) the ngx_http_xet_module authors

# Sends invalid uploads one after another, if possible on one connection, and
# checks how the server rejects them.
#
#     my $refusal = Test::Xet::Refusal->new($t);
#
#     $refusal->lines();
#     my $r = $refusal->send($uri, $body);
#     my @wrong = $refusal->wrong($r, 400, 'invalid_xorb');

use warnings;
use strict;

sub new {
	my ($class, $t) = @_;

	return bless { t => $t }, $class;
}

# Sends a body by POST.  Takes the options of exchange().

sub send {
	my ($self, $uri, $body, %o) = @_;

	my $c = $self->{c};

	if (!$c || $c->{eof} || $c->{over}) {
		$c->close() if $c;
		$c = $self->{c} = $self->{t}->connect();
	}

	my $r = $c->exchange('POST', $uri, {}, \$body, %o);

	$c->{over} = 1 if ($r->header_value('Connection') // 'close')
		eq 'close' || $r->{error};

	return $r;
}

# Returns whether the next upload can use the same connection.

sub open {
	my ($self) = @_;

	return $self->{c} && !$self->{c}{over};
}

sub close {
	my ($self) = @_;

	my $c = delete $self->{c};

	$c->close() if $c;
}

# Returns the log lines since the last call, without the levels info and below.

sub lines {
	my ($self) = @_;

	my $log = $self->{log};

	if (!$log) {
		CORE::open($log, '<', $self->{t}->dir() . '/error.log')
			or die "error.log: $!\n";
		$self->{log} = $log;
	}

	seek($log, 0, 1);

	return grep { /\[(?:warn|error|crit|alert|emerg)\]/ } <$log>;
}

# Checks that the response is JSON with this status and code, that the log has
# one line about it, and that no temporary data is left.  Returns a list of
# faults.
#
# If a shard names an unknown xorb, the response also has a text for the user,
# and on v2 is a frame.
#
#     line   regex for the last line
#     lines  maximum number of lines, 1
#     frame  1: the error is in the last frame of a 200

sub wrong {
	my ($self, $r, $status, $code, %o) = @_;

	my @lines = $self->lines();
	my $type = $r->header_value('Content-Type') // '';
	my $line = $o{line} || ($o{frame}
		? qr/\[error\] .* xet: error frame: $code: /
		: qr/\[error\] .* xet: $status $code: /);
	my $body = $o{frame} ? is_frame($r) : is_json($r, $code);
	my @wrong;

	$status = 200 if $o{frame};

	push @wrong, $r->{error} if $r->{error};
	push @wrong, "status $r->{status}" if $r->{status} != $status;
	push @wrong, "not JSON: $type" if $type ne
		($o{frame} ? 'application/x-ndjson' : 'application/json');
	push @wrong, "body $r->{body}" unless $body;
	push @wrong, @lines . " lines: @lines"
		if @lines != ($o{lines} // 1) || $lines[-1] !~ $line;
	push @wrong, 'temporary files' if $self->{t}->temp_files();

	return @wrong;
}

sub is_json {
	my ($r, $code) = @_;

	my $json = $r->json();

	return 0 unless ref $json eq 'HASH' && ref $json->{error} eq 'HASH';

	my %error = %{ $json->{error} };
	my @told = grep { $_ ne 'error' } keys %$json;

	return keys %error == 2 && ($error{code} // '') eq $code
		&& length($error{message} // '')
		&& ($code eq 'unknown_xorb'
			? "@told" eq 'error_description'
				&& $json->{error_description} eq $error{message}
			: !@told);
}

sub is_frame {
	my ($r) = @_;

	my $frames = eval { $r->frames() } || [];
	my $last = @$frames ? $frames->[-1]{data} : {};

	return ($last->{type} // '') eq 'error' && !$last->{retryable}
		&& length($last->{message} // '');
}

1;
