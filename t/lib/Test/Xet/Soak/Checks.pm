package Test::Xet::Soak::Checks;

# Copyright (C) the ngx_http_xet_module authors

# Checks responses against the model.  Methods of Test::Xet::Soak.

use warnings;
use strict;

use Digest::SHA qw/ sha256 /;

use Test::Xet::Bytes;
use Test::Xet::Client ();

# --------------------------------------------------------------------------
# reading

# Returns a request for a file; its response is checked against the subject's
# permissions.
#
#     range   [ first, last ]
#     method  HEAD

sub get_req {
	my ($self, $subject, $file, %o) = @_;

	my $range = $o{range};
	my %headers = %{ $o{headers} || {} };

	$headers{Range} = "bytes=$range->[0]-$range->[1]" if $range;

	my $req = {
		subject => $subject, node => $o{node}, scope => $o{scope},
		method => $o{method} // 'GET',
		uri => "/api/v1/files/$file->{hash}", headers => \%headers,
		file => $file, slow => $o{slow}, abort => $o{abort},
		text => ($o{method} // 'GET') . " $file->{name} by $subject"
			. ($range ? " $range->[0]-$range->[1]" : '')
			. ($o{slow} ? ' slowly' : '')
			. (defined $o{abort} ? ' broken off' : '')
	};

	$req->{before} = sub {
		my $model = $self->{model};

		$req->{may_fail} = %{ $model->{damage} };
		$req->{then} = { damage => { %{ $model->{damage} } },
			acked => { %{ $model->{acked} } },
			xorbs => $self->damageable($subject, $file) };
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		$self->got($req, $r, $file, $range) unless $unknown;
	};

	return $req;
}

sub got {
	my ($self, $req, $r, $file, $range) = @_;

	my $model = $self->{model};
	my $subject = $req->{subject};
	my $state = $model->sees($subject, $file);
	my $races = $self->races($req, $file, 'add')
		|| $self->races($req, $file, 'del');
	my $status = $r->{status};
	my $good = $status == 200 || $status == 206;

	if ($self->{mode} ne 'store' && $subject eq 'nobody') {
		$self->violation('privacy', "$req->{text}: $status", $file)
			if $status != 401;
		return;
	}

	$self->violation('privacy', "$req->{text}: $status", $file)
		if $good && $state eq 'no' && !$races;

	if ($good && !$r->{error}) {
		my $want = $range ? substr($file->{data}, $range->[0],
			$range->[1] - $range->[0] + 1) : $file->{data};

		$self->violation('bytes', "$req->{text}: wrong bytes", $file)
			if $req->{method} eq 'GET' && $r->{body} ne $want;

		# files that only "the whole" sees may still be collected

		$model->see($subject, $file, 'yes')
			if $state eq 'maybe' && !$races
				&& !$model->is_whole($subject);

		return;
	}

	return if $status == 404 && ($state ne 'yes' || $races);

	# with damaged data, the response is an error or 404

	$self->violation($state eq 'no' ? 'answers' : 'readable',
		"$req->{text}: $status " . ($r->{error} // '')
		. substr($r->{body} // '', 0, 150), $file)
		unless $self->may_fail($subject, $file)
			|| $self->might_fail($req, $file);
}

# Returns whether a read may fail because it started before a concurrent request
# was acknowledged: the read may use the terms that the file had before.

sub might_fail {
	my ($self, $req, $file) = @_;

	my $model = $self->{model};

	local $model->{damage} = $req->{then}{damage};
	local $model->{acked} = $req->{then}{acked};

	return $model->may_fail($file, @{ $req->{then}{xorbs} });
}

sub may_fail {
	my ($self, $subject, $file) = @_;

	my $model = $self->{model};

	return $model->may_fail($file, @{ $self->damageable($subject, $file) });
}

# Returns the xorbs of a file; queries the server only while xorbs are damaged.

sub damageable {
	my ($self, $subject, $file) = @_;

	my $model = $self->{model};

	return [] unless %{ $model->{damage} };

	return $self->plan($subject, $file) || [ keys %{ $model->{damage} } ];
}

# Returns the xorbs that a file uses.  If the server does not respond with 200
# now, returns the xorbs of its last such response.

sub plan {
	my ($self, $subject, $file) = @_;

	my $r = $self->node(0)->get($self->uri_of({ subject => $subject,
		uri => "/api/v2/reconstructions/$file->{hash}" }),
		$self->headers({ subject => $subject }));

	$self->{plans}{$file->{hash}} = [ keys %{ $r->json()->{xorbs} } ]
		if $r->{status} == 200 && $r->json();

	return $self->{plans}{$file->{hash}};
}

# Sends a single request outside of a phase.

sub ask {
	my ($self, $req) = @_;

	$req->{before}->($req) if $req->{before};

	my $r = $self->node($req->{node})->http($req->{method},
		$self->uri_of($req),
		$self->headers($req), undef, timeout => 60);

	$self->judge($req, $r);

	return $r;
}

# Checks a file for all subjects with one request each, and for one subject with
# every kind of read.

sub check_file {
	my ($self, $rng, $file) = @_;

	local $self->{running} = [];

	my $deep = $rng->pick(grep { !$self->{model}->is_whole($_) }
		@{ $self->{subjects} });

	for my $subject (@{ $self->{subjects} }, 'nobody') {
		$self->ask($self->get_req($subject, $file,
			node => $rng->int(2),
			scope => $rng->pick(qw/ read write /)));
	}

	$self->check_plan($rng, $deep, $file);
}

# Checks the reconstruction and its signed ranges.

sub check_plan {
	my ($self, $rng, $subject, $file) = @_;

	my $model = $self->{model};
	my $state = $model->sees($subject, $file);
	my $size = length($file->{data});
	my ($from, $to) = sort { $a <=> $b } $rng->int($size),
		$rng->int($size);
	my $range = $rng->chance(50) ? [ $from, $to ] : undef;
	my $node = $self->node($rng->int(2));

	my $d = Test::Xet::Client::download($node, $file->{hash},
		size => $size, version => $rng->pick(1, 2), twice => 0,
		headers => $self->headers({ subject => $subject }),
		$range ? (range => $range) : ());

	my $text = "reconstruction of $file->{name} by $subject: $d->{status}";

	return if $d->{status} == 404 && $state ne 'yes';

	$self->violation('privacy', $text, $file)
		if $d->{status} == 200 && $state eq 'no';

	my $want = $range ? substr($file->{data}, $from, $to - $from + 1)
		: $file->{data};

	if ($d->{status} == 200 && !@{ $d->{errors} }
		&& ($d->{data} // '') eq $want)
	{
		$self->keep_url($rng, $d->{plan}, $file);
		return;
	}

	# the server does not check the bytes of signed ranges, so only the
	# client detects flipped bits

	return if $self->may_fail($subject, $file);

	# a deletion whose response was lost may take effect between the
	# requests for the plan and for the data

	return if $state eq 'maybe' && $self->{collecting};

	$self->violation($d->{status} == 200 ? 'bytes' : 'readable', $text
		. " @{ $d->{errors} }", $file);
}

# --------------------------------------------------------------------------
# URLs stay valid for a while: the data that they return never changes

sub keep_url {
	my ($self, $rng, $plan, $file) = @_;

	my @xorbs = sort keys %{ $plan->{xorbs} } or return;
	my $hash = $rng->pick(@xorbs);
	my $entry = $rng->pick(@{ $plan->{xorbs}{$hash} });
	my $range = $rng->pick(@{ $entry->{ranges} });

	my $bytes = $self->url_bytes($entry->{url}, $range->{bytes});
	return unless defined $bytes && defined(my $raw
		= eval { decode_xorb($bytes) });

	push @{ $self->{urls} }, { url => $entry->{url}, xorb => $hash,
		bytes => $range->{bytes}, raw => sha256($raw),
		file => $file, step => $self->{step} };
	shift @{ $self->{urls} } if @{ $self->{urls} } > 200;
}

sub url_bytes {
	my ($self, $url, $bytes) = @_;

	my ($port, $path) = $url =~ m!^http://[^/]+:(\d+)(/.*)!;

	my $r = Test::Xet::HTTP->request($port, 'GET', $path,
		{ Range => "bytes=$bytes->{start}-$bytes->{end}",
		'Accept-Encoding' => 'gzip' }, undef, timeout => 60);

	return if $r->{error} || $r->{status} >= 400;

	$self->violation('bytes', "$r->{status} with "
		. length($r->{body}) . ' bytes for '
		. ($bytes->{end} - $bytes->{start} + 1) . " of $url")
		if $r->{status} != 206 || length($r->{body})
			!= $bytes->{end} - $bytes->{start} + 1
			|| defined $r->header_value('Content-Encoding');

	return $r->{body};
}

sub check_url {
	my ($self, $kept) = @_;

	my $bytes = $self->url_bytes($kept->{url}, $kept->{bytes});

	return if !defined $bytes || $self->{touched}{$kept->{xorb}};

	my $raw = eval { decode_xorb($bytes) };

	$self->violation('bytes', "a URL of step $kept->{step} for "
		. "$kept->{file}{name} gives other bytes", $kept->{file})
		if !defined $raw || sha256($raw) ne $kept->{raw};
}

1;
