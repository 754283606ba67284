package Plot;

# Copyright (C) the ngx_http_xet_module authors

# The plots of docs/performance.md, as SVG.  The rows are those of bench_row().

use warnings;
use strict;

use parent qw/ Exporter /;

our @EXPORT_OK = qw/ plot_goals plot_growth /;

my @colours = ('#1b6ca8', '#c0392b', '#2e8b57', '#8e5ea2');

# A bar for each row with a goal: how many times as far as the goal the row is
# from perfect, with a logarithmic axis.  A bar that ends left of the line 1 has
# met its goal.

sub plot_goals {
	my (@rows) = grep { defined $_->{goal} && ($_->{ratio} // $_->{value})
		> 0 } @_;

	my ($left, $width, $line) = (330, 420, 18);
	my $height = 40 + $line * @rows;
	my $x = sub {
		my $log = log($_[0]) / log(10);

		$log = $log < -1 ? -1 : $log > 1 ? 1 : $log;
		return $left + $width * ($log + 1) / 2;
	};
	my @out;

	for (0.1, 0.2, 0.5, 1, 2, 5, 10) {
		push @out, line($x->($_), 24, $x->($_), $height - 8,
			$_ == 1 ? '#333' : '#ddd'),
			text($x->($_), 16, $_, 'middle');
	}

	for my $i (0 .. $#rows) {
		my $row = $rows[$i];
		my $figure = $row->{ratio} // $row->{value};
		my $by = $row->{better} eq 'less' ? $figure / $row->{goal}
			: $row->{goal} / $figure;
		my $y = 28 + $i * $line;
		my ($from, $to) = sort { $a <=> $b } $x->(1), $x->($by);

		push @out, text($left - 8, $y + 11, $row->{name}, 'end'),
			sprintf('<rect x="%.0f" y="%d" width="%.0f" height="12"'
			. ' fill="%s"/>', $from, $y, $to - $from || 1,
			$by <= 1 ? $colours[2] : $colours[1]),
			text($x->($by) + ($by <= 1 ? -4 : 4), $y + 10,
			sprintf('%.2f', $by), $by <= 1 ? 'end' : 'start');
	}

	return svg($left + $width + 50, $height, @out);
}

# A line for each statement: its time with 10^n rows, compared with the fewest.

sub plot_growth {
	my %of;

	for (@_) {
		$of{$1}{$2} = $_->{ratio}
			if $_->{name} =~ /^growth: (.*), 10\^(\d+)$/;
	}

	my %n = map { $_ => 1 } map { keys %$_ } values %of;
	my @n = sort { $a <=> $b } keys %n;

	return undef if @n < 2;

	my ($most) = sort { $b <=> $a } 2, map { values %$_ } values %of;
	my ($left, $top, $width, $height) = (40, 20, 420, 200);
	my $x = sub { $left + $width * ($_[0] - $n[0]) / ($n[-1] - $n[0]) };
	my $y = sub { $top + $height * (1 - $_[0] / $most) };
	my (@out, $i);

	push @out, line($left, $y->($_), $left + $width, $y->($_),
		$_ == 1.3 ? '#999' : '#ddd'), text($left - 6, $y->($_) + 4, $_,
		'end') for 0, 1, 1.3, grep { $_ <= $most } 2 .. 6;
	push @out, text($x->($_), $top + $height + 16, "10^$_", 'middle')
		for @n;

	for my $what (sort keys %of) {
		my $colour = $colours[$i++ % @colours];
		my @at = grep { defined $of{$what}{$_} } @n;

		push @out, sprintf('<polyline fill="none" stroke="%s"'
			. ' stroke-width="2" points="%s"/>', $colour,
			join(' ', map { sprintf('%.0f,%.0f', $x->($_),
			$y->($of{$what}{$_})) } @at)),
			text($left + $width + 10, $top + 16 * $i, $what,
			'start', $colour);
	}

	return svg($left + $width + 150, $top + $height + 30, @out);
}

sub svg {
	my ($width, $height, @out) = @_;

	return join("\n", qq(<svg xmlns="http://www.w3.org/2000/svg")
		. qq( viewBox="0 0 $width $height" font-family="sans-serif")
		. ' font-size="11">',
		qq(<rect width="$width" height="$height" fill="#fff"/>),
		@out, "</svg>\n");
}

sub line {
	return sprintf('<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f"'
		. ' stroke="%s"/>', @_);
}

sub text {
	my ($x, $y, $text, $anchor, $colour) = @_;

	my %escape = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;');

	return sprintf('<text x="%.0f" y="%.0f" text-anchor="%s" fill="%s">%s'
		. '</text>', $x, $y, $anchor, $colour // '#222',
		$text =~ s/([&<>])/$escape{$1}/gr);
}

1;
